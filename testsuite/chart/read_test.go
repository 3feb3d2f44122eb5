//go:build integration && linux

package chart_test

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/pflag"
	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"github.com/egressfleet/egressfleet/internal/config"
	"github.com/egressfleet/egressfleet/providers/all"
	"github.com/egressfleet/egressfleet/providers/registry"
	"github.com/egressfleet/egressfleet/testsuite/kubeapi"
)

// configuration is what the worker of a Deployment would read.
func configuration(t *testing.T, dir string, d appsv1.Deployment) config.Config {
	t.Helper()
	c := d.Spec.Template.Spec.Containers[0]
	require.Equal(t, []string{"--config", "/etc/egressfleet/config/worker.yaml"}, c.Args)
	sources := config.Sources{
		File: filepath.Join(dir, "worker.yaml"), Flags: pflag.NewFlagSet("worker", pflag.ContinueOnError),
	}
	for _, variable := range c.Env {
		sources.Environ = append(sources.Environ, variable.Name+"="+variable.Value)
	}
	config.AddFlags(sources.Flags)
	read, err := sources.Load()
	require.NoError(t, err, d.Name)
	require.Empty(t, read.Warnings)
	return read
}

// files writes the ConfigMap as it is mounted.
func files(t *testing.T, maps []corev1.ConfigMap) (dir string) {
	t.Helper()
	maps = slices.DeleteFunc(maps, func(m corev1.ConfigMap) bool { return m.Labels["grafana_dashboard"] != "" })
	require.Len(t, maps, 1)
	dir = t.TempDir()
	for name, text := range maps[0].Data {
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600))
	}
	return dir
}

// needs are the paths that a process with this configuration opens.
func needs(c config.Config) (paths []string) {
	paths = []string{c.Codec.Keys}
	if c.Plays(config.RoleAPI) {
		paths = append(paths, c.API.TokensFile, c.API.TLS.Certificate, c.API.TLS.Key, c.Codec.TokensFile)
	}
	if c.Plays(config.RoleWorker) {
		paths = append(paths, c.ProvidersFile)
	}
	return slices.DeleteFunc(paths, func(path string) bool { return path == "" })
}

func TestTheWorkerReadsWhatItIsGiven(t *testing.T) {
	t.Parallel()
	for name := range valueFiles(t) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			objects := render(t, name)
			dir := files(t, typed[corev1.ConfigMap](t, objects, "ConfigMap"))
			played := map[config.Role]bool{}
			for _, d := range typed[appsv1.Deployment](t, objects, "Deployment") {
				read := configuration(t, dir, d)
				for _, role := range read.Roles {
					played[role] = true
				}
				mounts := d.Spec.Template.Spec.Containers[0].VolumeMounts
				for _, path := range needs(read) {
					require.True(t, slices.ContainsFunc(mounts, func(m corev1.VolumeMount) bool {
						return path == m.MountPath || strings.HasPrefix(path, m.MountPath+"/")
					}), "%s: nothing is mounted at %s", d.Name, path)
				}
			}
			require.True(t, played[config.RoleWorker] && played[config.RoleAPI], played)
			entries, err := registry.LoadFile(filepath.Join(dir, "providers.yaml"))
			require.NoError(t, err)
			for _, entry := range entries {
				require.True(t, slices.ContainsFunc(all.Factories(), func(f registry.Factory) bool {
					return f.Type() == entry.Type
				}), entry.Type)
			}
		})
	}
}

func TestCredentialsAreTheWorkersAlone(t *testing.T) {
	t.Parallel()
	mounts := func(more ...string) map[string]string {
		found := map[string]string{}
		for _, d := range typed[appsv1.Deployment](t, render(t, "providers", more...), "Deployment") {
			var text strings.Builder
			for _, m := range d.Spec.Template.Spec.Containers[0].VolumeMounts {
				text.WriteString(m.MountPath + " ")
			}
			if *d.Spec.Template.Spec.AutomountServiceAccountToken {
				text.WriteString("token")
			}
			found[d.Spec.Template.Labels["app.kubernetes.io/component"]] = text.String()
		}
		return found
	}
	const shared, tokens = "/tmp /etc/egressfleet/config ", "/etc/egressfleet/api-tokens "
	const own = "/etc/egressfleet/providers/gcp /etc/egressfleet/secrets/squid-users " +
		"/etc/egressfleet/secrets/tls-of-proxies token"
	require.Equal(t, map[string]string{"worker": shared + tokens + own}, mounts())
	require.Equal(t, map[string]string{"worker": shared + own, "api": shared + tokens, "outside": shared},
		mounts("--set", "together=false,outside.enabled=true"))
}

// A worker that waits for one backend's Secret serves none of the others. What guards
// something, such as keys and tokens, is never left out in silence.
func TestOnlyWhatABackendOrAProxyAsksForMayBeMissing(t *testing.T) {
	t.Parallel()
	mayBeMissing, must := []string{}, []string{}
	for _, d := range typed[appsv1.Deployment](t, render(t, "providers", "--set", "codec.keysSecret=keys"), "Deployment") {
		for _, v := range d.Spec.Template.Spec.Volumes {
			switch {
			case v.Secret == nil:
			case v.Secret.Optional != nil && *v.Secret.Optional:
				mayBeMissing = append(mayBeMissing, v.Name)
			default:
				must = append(must, v.Name)
			}
		}
	}
	require.ElementsMatch(t, []string{"provider-gcp", "cloud-init-0", "cloud-init-1"}, mayBeMissing)
	require.ElementsMatch(t, []string{"api-tokens", "codec-keys"}, must)
}

func TestAContainerIsBound(t *testing.T) {
	t.Parallel()
	for _, d := range typed[appsv1.Deployment](t, render(t, "apart"), "Deployment") {
		pod, component := d.Spec.Template.Spec, d.Spec.Template.Labels["app.kubernetes.io/component"]
		c := pod.Containers[0]
		require.True(t, *c.SecurityContext.ReadOnlyRootFilesystem)
		require.Equal(t, "128Mi", c.Resources.Limits.Memory().String())
		require.Equal(t, "/tmp", c.VolumeMounts[0].MountPath)
		require.Equal(t, "64Mi", pod.Volumes[0].EmptyDir.SizeLimit.String())
		port, scheme := "metrics", corev1.URISchemeHTTP
		if component == "api" {
			port, scheme = "api", corev1.URISchemeHTTPS
		}
		for path, probe := range map[string]*corev1.Probe{"/healthz": c.LivenessProbe, "/readyz": c.ReadinessProbe} {
			require.Equal(t, path, probe.HTTPGet.Path)
			require.Equal(t, port, probe.HTTPGet.Port.StrVal, component)
			require.Equal(t, scheme, probe.HTTPGet.Scheme, component)
		}
	}
}

func TestTheRightsAreThoseThatAreShipped(t *testing.T) {
	t.Parallel()
	objects := render(t, "providers")
	shipped := kubeapi.Rules(t, path(t, "deploy/kubernetes/rbac.yaml"), "production")
	of := map[string][]string{}
	for _, role := range typed[rbacv1.Role](t, objects, "Role") {
		of[role.Name] = append(of[role.Name], role.Namespace)
		want := shipped
		if role.Name == "providers-egressfleet-no-policy" {
			want = slices.DeleteFunc(slices.Clone(shipped), func(rule rbacv1.PolicyRule) bool {
				return slices.Contains(rule.Resources, "networkpolicies")
			})
		}
		require.Equal(t, want, role.Rules, role.Name)
	}
	require.Equal(t, map[string][]string{
		"providers-egressfleet-kubernetes": {"egress", "egress-large", "egress-old"},
		"providers-egressfleet-no-policy":  {"egress"},
	}, sorted(of))
	nodes := typed[rbacv1.ClusterRole](t, objects, "ClusterRole")
	require.Len(t, nodes, 1)
	require.Equal(t, kubeapi.Rules(t, path(t, "deploy/kubernetes/rbac-nodes.yaml"), "production"), nodes[0].Rules)
	for _, binding := range typed[rbacv1.RoleBinding](t, objects, "RoleBinding") {
		require.Equal(t, []rbacv1.Subject{{
			Kind: "ServiceAccount", Name: "providers-egressfleet", Namespace: "providers",
		}}, binding.Subjects)
	}
}

func TestAlertsAndDashboardAreThoseThatAreShipped(t *testing.T) {
	t.Parallel()
	objects := render(t, "everything")
	var shipped map[string]any
	text, err := os.ReadFile(path(t, "deploy/helm/egressfleet/rules.yaml"))
	require.NoError(t, err)
	require.NoError(t, yaml.Unmarshal(text, &shipped))
	i := slices.IndexFunc(objects, func(o *unstructured.Unstructured) bool { return o.GetKind() == "PrometheusRule" })
	groups, _, err := unstructured.NestedSlice(objects[i].Object, "spec", "groups")
	require.NoError(t, err)
	require.Len(t, groups, 2, "what the values add is there, too")
	require.Equal(t, shipped["groups"].([]any)[0], groups[1])
	text, err = os.ReadFile(path(t, "deploy/helm/egressfleet/dashboard.json"))
	require.NoError(t, err)
	for _, m := range typed[corev1.ConfigMap](t, objects, "ConfigMap") {
		if m.Labels["grafana_dashboard"] != "" {
			require.Equal(t, map[string]string{"egressfleet.json": string(text)}, m.Data)
			return
		}
	}
	require.Fail(t, "no dashboard")
}

func sorted(lists map[string][]string) map[string][]string {
	for _, list := range lists {
		slices.Sort(list)
	}
	return lists
}
