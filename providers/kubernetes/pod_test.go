package kubernetes_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"

	"github.com/egressfleet/egressfleet/providers"
	"github.com/egressfleet/egressfleet/providers/kubernetes"
)

// provider is one that is never asked to call anybody.
func provider(t *testing.T, change ...func(*kubernetes.Config)) *kubernetes.Provider {
	t.Helper()
	cfg := kubernetes.Config{Namespace: namespace, ClusterRanges: []string{"10.244.0.0/16", "fd00:10::/48"}}
	for _, c := range change {
		c(&cfg)
	}
	p, err := kubernetes.New(t.Context(), providerName, installation, cfg)
	require.NoError(t, err)
	return p
}

func built(t *testing.T, p *kubernetes.Provider, change ...func(*providers.CreateRequest)) *corev1.Pod {
	t.Helper()
	req := request("u")
	for _, c := range change {
		c(&req)
	}
	pod, err := kubernetes.BuildPod(p, req)
	require.NoError(t, err)
	return pod
}

func template(text string) func(*kubernetes.Config) {
	return func(cfg *kubernetes.Config) { cfg.PodTemplate = json.RawMessage(text) }
}

// The profile "restricted" of the Pod Security Standards, and what goes beyond it.
func TestThePodIsRestricted(t *testing.T) {
	t.Parallel()
	pod := built(t, provider(t))
	require.False(t, *pod.Spec.AutomountServiceAccountToken)
	require.False(t, *pod.Spec.EnableServiceLinks)
	require.False(t, pod.Spec.HostNetwork || pod.Spec.HostPID || pod.Spec.HostIPC)
	security := pod.Spec.SecurityContext
	require.True(t, *security.RunAsNonRoot)
	require.NotZero(t, *security.RunAsUser)
	require.Equal(t, corev1.SeccompProfileTypeRuntimeDefault, security.SeccompProfile.Type)
	require.Empty(t, security.Sysctls, "a high port needs none")
	for _, v := range pod.Spec.Volumes {
		require.True(t, v.EmptyDir != nil && v.EmptyDir.SizeLimit != nil || v.DownwardAPI != nil, v.Name)
	}
	require.Len(t, pod.Spec.Containers, 1)
	c := pod.Spec.Containers[0]
	require.False(t, *c.SecurityContext.AllowPrivilegeEscalation)
	require.True(t, *c.SecurityContext.ReadOnlyRootFilesystem)
	require.True(t, *c.SecurityContext.RunAsNonRoot)
	require.Equal(t, []corev1.Capability{"ALL"}, c.SecurityContext.Capabilities.Drop)
	require.Empty(t, c.SecurityContext.Capabilities.Add)
	require.Nil(t, c.SecurityContext.Privileged)
	for _, name := range []corev1.ResourceName{corev1.ResourceCPU, corev1.ResourceMemory} {
		require.Contains(t, c.Resources.Requests, name)
		require.Contains(t, c.Resources.Limits, name)
	}
	require.Equal(t, 3128, c.ReadinessProbe.TCPSocket.Port.IntValue())
}

func TestThePodHasTheMarksAndItsOwner(t *testing.T) {
	t.Parallel()
	pod := built(t, provider(t), func(req *providers.CreateRequest) { req.Labels = map[string]string{"team": "a"} })
	require.Equal(t, map[string]string{
		"team": "a", providers.MarkManaged: "true", providers.MarkUID: "u", providers.MarkInstallation: installation,
		"proxy-operator-provider": providerName,
	}, pod.Labels)
	require.Equal(t, "default/mine", pod.Annotations[providers.MarkOwner])
	require.Equal(t, `{"port":3128}`, pod.Annotations[providers.MarkSpec])
	require.Equal(t, "1", pod.Annotations["proxy-operator-attempt"])
	require.Equal(t, kubernetes.SquidConf(provider(t), 3128), pod.Annotations["proxy-operator-squid.conf"])
	require.Len(t, pod.OwnerReferences, 1)
	require.Equal(t, "egressfleet.production", pod.OwnerReferences[0].Name)
	require.Equal(t, namespace, pod.Namespace)
	require.Equal(t, providers.NameFromUID("u"), pod.Name)
}

func TestPlacementAndPort(t *testing.T) {
	t.Parallel()
	p := provider(t, func(cfg *kubernetes.Config) {
		cfg.MachineTypes = map[string]kubernetes.MachineType{"big": {
			Namespace: "big-egress",
			Requests:  map[string]string{"cpu": "2", "memory": "1Gi"}, Limits: map[string]string{"cpu": "4", "memory": "2Gi"},
		}}
	})
	pod := built(t, p, func(req *providers.CreateRequest) {
		req.Port = 443
		req.Placement = providers.Placement{Region: "eu", Zone: "eu-1a", MachineType: "big", Image: "example/squid:7"}
	})
	require.Equal(t, map[string]string{
		"topology.kubernetes.io/region": "eu", "topology.kubernetes.io/zone": "eu-1a",
	}, pod.Spec.NodeSelector)
	require.Equal(t, "big-egress", pod.Namespace)
	require.Equal(t, "example/squid:7", pod.Spec.Containers[0].Image)
	require.Equal(t, "2", pod.Spec.Containers[0].Resources.Requests.Cpu().String())
	require.EqualValues(t, 443, pod.Spec.Containers[0].Ports[0].ContainerPort)
	require.Equal(t, []corev1.Sysctl{{Name: "net.ipv4.ip_unprivileged_port_start", Value: "443"}},
		pod.Spec.SecurityContext.Sysctls)

	plain := built(t, p)
	require.Equal(t, namespace, plain.Namespace)
	require.Equal(t, "ubuntu/squid:6.6-24.04_beta", plain.Spec.Containers[0].Image)
	require.Equal(t, "64Mi", plain.Spec.Containers[0].Resources.Requests.Memory().String())
	require.Empty(t, plain.Spec.NodeSelector)
}

func TestAPodTemplateChangesAnythingButTheMarks(t *testing.T) {
	t.Parallel()
	p := provider(t, template(`{
		"metadata": {"labels": {"app": "egress", "team": "template"}, "annotations": {"example.com/x": "y"}},
		"spec": {
			"terminationGracePeriodSeconds": 1,
			"tolerations": [{"key": "egress", "operator": "Exists"}],
			"volumes": [{"name": "spool", "$patch": "delete"}],
			"containers": [
				{"name": "proxy", "imagePullPolicy": "Never",
				 "volumeMounts": [{"mountPath": "/var/spool/squid", "$patch": "delete"}]},
				{"name": "side", "image": "example/side:1"}
			]
		}}`))
	pod := built(t, p, func(req *providers.CreateRequest) { req.Labels = map[string]string{"team": "a"} })
	require.Equal(t, "egress", pod.Labels["app"])
	require.Equal(t, "u", pod.Labels[providers.MarkUID])
	require.Equal(t, "y", pod.Annotations["example.com/x"])
	require.Contains(t, pod.Annotations, providers.MarkSpec)
	require.EqualValues(t, 1, *pod.Spec.TerminationGracePeriodSeconds)
	require.Len(t, pod.Spec.Tolerations, 1)
	require.Len(t, pod.Spec.Containers, 2)
	for _, c := range pod.Spec.Containers {
		if c.Name == "proxy" {
			require.Equal(t, corev1.PullNever, c.ImagePullPolicy)
			require.NotEmpty(t, c.Command, "what the template does not speak of stays")
			require.Len(t, c.VolumeMounts, 4)
		}
	}
	require.Len(t, pod.Spec.Volumes, 4)
	require.Equal(t, providers.NameFromUID("u"), pod.Name)
	require.Len(t, pod.OwnerReferences, 1)
}

func TestRequestsThatCanNeverBeMet(t *testing.T) {
	t.Parallel()
	p := provider(t)
	for name, c := range map[string]struct {
		change func(*providers.CreateRequest)
		want   string
	}{
		"a name that is none":      {func(r *providers.CreateRequest) { r.Name = "../x" }, `name: "../x"`},
		"no UID":                   {func(r *providers.CreateRequest) { r.UID = "" }, `uid: ""`},
		"a UID that is no label":   {func(r *providers.CreateRequest) { r.UID = "a/b" }, `uid: "a/b"`},
		"port 0":                   {func(r *providers.CreateRequest) { r.Port = 0 }, "spec.port: 0"},
		"a port that is too large": {func(r *providers.CreateRequest) { r.Port = 65536 }, "spec.port: 65536"},
		"a machine type of nobody": {
			func(r *providers.CreateRequest) { r.Placement.MachineType = "huge" }, `spec.placement.machineType: "huge"`,
		},
		"a zone that is no label": {
			func(r *providers.CreateRequest) { r.Placement.Zone = "a b" }, `spec.placement.zone: "a b"`,
		},
		"a region that is no label": {
			func(r *providers.CreateRequest) { r.Placement.Region = "a/b" }, `spec.placement.region: "a/b"`,
		},
		"an image with a space": {
			func(r *providers.CreateRequest) { r.Placement.Image = "a b" }, `spec.placement.image: "a b"`,
		},
		"a mark as a label": {
			func(r *providers.CreateRequest) { r.Labels = map[string]string{providers.MarkUID: "x"} },
			`labels: "proxy-operator-uid" is kept`,
		},
		"a label that is none": {
			func(r *providers.CreateRequest) { r.Labels = map[string]string{"a b": "x"} }, `labels: "a b"`,
		},
		"a value that is none": {
			func(r *providers.CreateRequest) { r.Labels = map[string]string{"a": "x y"} }, `labels.a: "x y"`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			req := request("u")
			c.change(&req)
			_, err := kubernetes.BuildPod(p, req)
			require.ErrorContains(t, err, c.want)
			require.Equal(t, providers.ErrPermanent, kubernetes.Classify(err, providers.OpCreate, ""))
		})
	}
}

func TestTheProxyIsClosedToTheWorld(t *testing.T) {
	t.Parallel()
	p := provider(t, func(cfg *kubernetes.Config) {
		cfg.AllowedClients, cfg.Probers = []string{"10.20.0.0/16"}, []string{"192.0.2.7/32"}
		cfg.DeniedTargets = []string{"10.0.0.0/8"}
	})
	conf := kubernetes.SquidConf(p, 8080)
	lines := strings.Split(conf, "\n")
	require.Contains(t, lines, "http_port 8080")
	require.Contains(t, lines, "acl clients src 10.20.0.0/16")
	require.Contains(t, lines, "acl clients src 192.0.2.7/32")
	require.NotContains(t, conf, "10.244.0.0/16", "the cluster is no client once somebody else is named")
	require.Contains(t, lines, "acl denied_targets dst 169.254.0.0/16")
	require.Contains(t, lines, "acl denied_targets dst 10.0.0.0/8")
	require.Contains(t, lines, "acl tunnel_ports port 443 80")
	require.Contains(t, lines, "pid_filename none")
	var rules []string
	for _, line := range lines {
		if strings.HasPrefix(line, "http_access ") {
			rules = append(rules, line)
		}
	}
	require.Equal(t, []string{
		"http_access deny !clients", "http_access deny tunnel !tunnel_ports", "http_access deny !tunnel !plain_ports",
		"http_access deny manager", "http_access deny denied_targets", "http_access allow clients", "http_access deny all",
	}, rules)
}
