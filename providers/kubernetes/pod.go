package kubernetes

import (
	"strconv"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/egressfleet/egressfleet/providers"
)

// What a Pod carries besides the marks. The prefix is that of the marks, so that no
// label of a user and no podTemplate can take the place of one.
const (
	labelProvider     = providers.MarkPrefix + "provider" // a NetworkPolicy selects by it
	annotationConf    = providers.MarkPrefix + "squid.conf"
	annotationAttempt = providers.MarkPrefix + "attempt"
)

const (
	container = "proxy"
	// squidUser is "proxy", as which Debian's and Ubuntu's squid runs.
	squidUser = 13
	// graceSeconds is longer than squid's shutdown_lifetime.
	graceSeconds   = 10
	firstPort      = 1
	firstUserPort  = 1024 // below it only root may listen, unless a sysctl says otherwise
	lastPort       = 65535
	scratchPerPath = "64Mi"
)

// plan is everything that a Pod follows from.
type plan struct {
	provider     string
	installation string
	set          settings
	owner        metav1.OwnerReference
	req          providers.CreateRequest
}

// checkRequest refuses what this provider can never do.
func checkRequest(set settings, req providers.CreateRequest) error {
	if !isLabel(req.Name) {
		return permanent("name: %q is not a DNS label", req.Name)
	}
	if problems := validation.IsValidLabelValue(req.UID); req.UID == "" || len(problems) > 0 {
		return permanent("uid: %q is not the value of a label, 1 to 63 of a-z, A-Z, 0-9, '-', '_' and '.'", req.UID)
	}
	if req.Port < firstPort || req.Port > lastPort {
		return permanent("spec.port: %d is not between %d and %d", req.Port, firstPort, lastPort)
	}
	if err := checkPlacement(set, req.Placement); err != nil {
		return err
	}
	return checkLabels(req.Labels)
}

func checkPlacement(set settings, at providers.Placement) error {
	name := orElse(at.MachineType, defaultMachine)
	if _, has := set.machines[name]; !has {
		return permanent("spec.placement.machineType: %q is none of the catalogue: %v", name, sorted(set.machines))
	}
	if at.Image != "" {
		if err := checkImage("spec.placement.image", at.Image); err != nil {
			return permanent("%w", err)
		}
	}
	for field, value := range map[string]string{"region": at.Region, "zone": at.Zone} {
		if len(validation.IsValidLabelValue(value)) > 0 {
			return permanent("spec.placement.%s: %q is not the value of a label of a node", field, value)
		}
	}
	return nil
}

func checkLabels(labels map[string]string) error {
	for _, key := range sorted(labels) {
		switch {
		case providers.IsMark(key):
			return permanent("labels: %q is kept for the marks", key)
		case len(validation.IsQualifiedName(key)) > 0:
			return permanent("labels: %q is not the key of a label", key)
		case len(validation.IsValidLabelValue(labels[key])) > 0:
			return permanent("labels.%s: %q is not the value of a label", key, labels[key])
		}
	}
	return nil
}

// placeOf is where the Pod of a request is made. It follows from the request and the
// configuration alone, since two creates of one name must meet.
func placeOf(set settings, req providers.CreateRequest) place {
	return place{orElse(set.machineOf(req.Placement).namespace, set.namespaces[0]), req.Name}
}

func (s settings) machineOf(at providers.Placement) machine {
	return s.machines[orElse(at.MachineType, defaultMachine)]
}

// buildPod returns the Pod of a request: the generated one, the podTemplate over it, and
// what no template may change over both.
func buildPod(p plan) (*corev1.Pod, error) {
	at := placeOf(p.set, p.req)
	base := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{}, Annotations: map[string]string{}},
		Spec:       podSpec(p),
	}
	for key, value := range p.req.Labels {
		base.Labels[key] = value
	}
	pod, err := p.set.template.over(base)
	if err != nil {
		return nil, err
	}
	pod.Name, pod.Namespace = at.name, at.namespace
	pod.OwnerReferences = []metav1.OwnerReference{p.owner}
	mark(pod, p)
	return pod, nil
}

func mark(pod *corev1.Pod, p plan) {
	pod.Labels = merged(pod.Labels, map[string]string{
		providers.MarkManaged:      providers.MarkManagedYes,
		providers.MarkUID:          p.req.UID,
		providers.MarkInstallation: p.req.Installation,
		labelProvider:              p.provider,
	})
	pod.Annotations = merged(pod.Annotations, map[string]string{
		providers.MarkOwner: p.req.Owner,
		providers.MarkSpec:  p.req.SpecMark,
		annotationAttempt:   strconv.Itoa(p.req.Attempt),
		annotationConf:      squidConf(p.req.Port, p.set.ranges),
	})
}

func merged(into, from map[string]string) map[string]string {
	if into == nil {
		into = map[string]string{}
	}
	for key, value := range from {
		into[key] = value
	}
	return into
}

func podSpec(p plan) corev1.PodSpec {
	volumes, mounts := storage()
	return corev1.PodSpec{
		RestartPolicy:                 corev1.RestartPolicyAlways,
		AutomountServiceAccountToken:  new(false),
		EnableServiceLinks:            new(false),
		TerminationGracePeriodSeconds: new(int64(graceSeconds)),
		NodeSelector:                  nodeSelector(p.req.Placement),
		SecurityContext:               podSecurity(p.req.Port),
		Volumes:                       volumes,
		Containers: []corev1.Container{{
			Name:    container,
			Image:   orElse(p.req.Placement.Image, p.set.image),
			Command: []string{"squid", "-N", "-d", "1", "-f", configDir + "/" + configFile},
			Ports: []corev1.ContainerPort{{
				Name: container, Protocol: corev1.ProtocolTCP,
				ContainerPort: int32(p.req.Port), //nolint:gosec // checked to be a port
			}},
			Resources:       p.set.machineOf(p.req.Placement).resources,
			VolumeMounts:    mounts,
			SecurityContext: containerSecurity(),
			ReadinessProbe: &corev1.Probe{
				ProbeHandler:  corev1.ProbeHandler{TCPSocket: &corev1.TCPSocketAction{Port: intstr.FromInt(p.req.Port)}},
				PeriodSeconds: 2, TimeoutSeconds: 2, FailureThreshold: 3,
			},
		}},
	}
}

func nodeSelector(at providers.Placement) map[string]string {
	selector := map[string]string{}
	if at.Region != "" {
		selector[corev1.LabelTopologyRegion] = at.Region
	}
	if at.Zone != "" {
		selector[corev1.LabelTopologyZone] = at.Zone
	}
	return selector
}

// podSecurity passes the profile "restricted". The sysctl is one of the safe ones, and
// lets a user that is not root listen on a low port.
func podSecurity(port int) *corev1.PodSecurityContext {
	security := &corev1.PodSecurityContext{
		RunAsNonRoot:   new(true),
		RunAsUser:      new(int64(squidUser)),
		RunAsGroup:     new(int64(squidUser)),
		FSGroup:        new(int64(squidUser)),
		SeccompProfile: &corev1.SeccompProfile{Type: corev1.SeccompProfileTypeRuntimeDefault},
	}
	if port < firstUserPort {
		security.Sysctls = []corev1.Sysctl{{Name: "net.ipv4.ip_unprivileged_port_start", Value: strconv.Itoa(port)}}
	}
	return security
}

func containerSecurity() *corev1.SecurityContext {
	return &corev1.SecurityContext{
		AllowPrivilegeEscalation: new(false),
		ReadOnlyRootFilesystem:   new(true),
		RunAsNonRoot:             new(true),
		Capabilities:             &corev1.Capabilities{Drop: []corev1.Capability{"ALL"}},
	}
}

// storage is the configuration, which the kubelet reads from the Pod itself, and what
// squid writes to, since its root is read-only.
func storage() ([]corev1.Volume, []corev1.VolumeMount) {
	volumes := []corev1.Volume{{Name: "config", VolumeSource: corev1.VolumeSource{
		DownwardAPI: &corev1.DownwardAPIVolumeSource{Items: []corev1.DownwardAPIVolumeFile{{
			Path:     configFile,
			FieldRef: &corev1.ObjectFieldSelector{FieldPath: "metadata.annotations['" + annotationConf + "']"},
		}}},
	}}}
	mounts := []corev1.VolumeMount{{Name: "config", MountPath: configDir, ReadOnly: true}}
	limit := resource.MustParse(scratchPerPath)
	for _, scratch := range []struct{ name, path string }{
		{"tmp", "/tmp"}, {"run", "/run"}, {"log", "/var/log/squid"}, {"spool", "/var/spool/squid"},
	} {
		volumes = append(volumes, corev1.Volume{Name: scratch.name, VolumeSource: corev1.VolumeSource{
			EmptyDir: &corev1.EmptyDirVolumeSource{SizeLimit: &limit},
		}})
		mounts = append(mounts, corev1.VolumeMount{Name: scratch.name, MountPath: scratch.path})
	}
	return volumes, mounts
}
