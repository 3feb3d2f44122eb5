//go:build integration && linux

package chart_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/egressfleet/egressfleet/testsuite/guides"
	"github.com/egressfleet/egressfleet/testsuite/kubelab"
)

// home and deployed are the namespace and the Deployment of docs/helm.md.
const home, deployed = "egressfleet", "fleet-egressfleet-worker"

// operator is who types what docs/helm.md says.
type operator struct {
	*cluster
	t   *testing.T
	dir string // with deploy/ of the repository, and values.yaml
}

func newOperator(t *testing.T) *operator {
	t.Helper()
	o := &operator{cluster: newCluster(t, kubelab.Options{Kwok: true}), t: t, dir: t.TempDir()}
	require.NoError(t, o.AddNode(t.Context(), "node", "zone"))
	for _, namespace := range []string{home, "egress", "egress-old"} {
		require.NoError(t, o.Namespace(t.Context(), namespace, restricted))
	}
	require.NoError(t, os.Symlink(path(t, "deploy"), filepath.Join(o.dir, "deploy")))
	return o
}

// types runs the one block of the page in which the words are.
func (o *operator) types(words string) {
	o.t.Helper()
	page, err := os.ReadFile(path(o.t, "docs/helm.md"))
	require.NoError(o.t, err)
	var found []string
	for _, block := range guides.Blocks(string(page)) {
		if strings.Contains(block.Code, words) {
			found = append(found, block.Code)
		}
	}
	require.Len(o.t, found, 1, "blocks of docs/helm.md with %q", words)
	o.run(found[0])
}

// run runs a line of bash, which finds the helm of tools/helm before any other.
func (o *operator) run(line string) (out string) {
	o.t.Helper()
	cmd := exec.CommandContext(o.t.Context(), "bash", "-euo", "pipefail", "-c", line)
	cmd.Dir = o.dir
	cmd.Env = []string{
		"PATH=" + path(o.t, "bin") + ":" + os.Getenv("PATH"), "HOME=" + o.dir, "KUBECONFIG=" + o.AdminFile(),
	}
	said, err := cmd.CombinedOutput()
	require.NoError(o.t, err, "%s\n%s", line, said)
	return string(said)
}

// upgrades writes the values and types the upgrade.
func (o *operator) upgrades(values string) {
	o.t.Helper()
	require.NoError(o.t, os.WriteFile(filepath.Join(o.dir, "values.yaml"), []byte(values), 0o600))
	o.types("helm upgrade")
}

// thing is an object of the release as the API server has it.
type thing struct {
	uid     string
	content map[string]any
}

// kinds are those of which the chart makes objects by itself or by values of this test.
func kinds() []schema.GroupKind {
	return []schema.GroupKind{
		{Kind: "ConfigMap"},
		{Kind: "Service"},
		{Kind: "ServiceAccount"},
		{Group: "apps", Kind: "Deployment"},
		{Group: "policy", Kind: "PodDisruptionBudget"},
		{Group: "networking.k8s.io", Kind: "NetworkPolicy"},
		{Group: "rbac.authorization.k8s.io", Kind: "Role"},
		{Group: "rbac.authorization.k8s.io", Kind: "RoleBinding"},
		{Group: "rbac.authorization.k8s.io", Kind: "ClusterRole"},
		{Group: "rbac.authorization.k8s.io", Kind: "ClusterRoleBinding"},
	}
}

// things are all objects of the release, by kind, namespace and name; they are those of
// its manifest.
func (o *operator) things() map[string]thing {
	o.t.Helper()
	found := map[string]thing{}
	for _, kind := range kinds() {
		mapping, err := o.mapper.RESTMapping(kind)
		require.NoError(o.t, err)
		list, err := o.client.Resource(mapping.Resource).List(o.t.Context(),
			metav1.ListOptions{LabelSelector: "app.kubernetes.io/instance=fleet,helm.sh/chart"})
		require.NoError(o.t, err)
		for _, object := range list.Items {
			found[nameOf(&object, "")] = thing{string(object.GetUID()), contentOf(object)}
		}
	}
	var want []string
	for _, object := range documents(o.t, o.run("helm get manifest fleet -n "+home)) {
		namespace := home
		if strings.HasPrefix(object.GetKind(), "Cluster") {
			namespace = ""
		}
		want = append(want, nameOf(object, namespace))
	}
	var have []string
	for name := range found {
		have = append(have, name)
	}
	require.ElementsMatch(o.t, want, have, "what the release made, and what is there")
	return found
}

func nameOf(object *unstructured.Unstructured, namespace string) string {
	if object.GetNamespace() != "" {
		namespace = object.GetNamespace()
	}
	return object.GetKind() + " " + namespace + "/" + object.GetName()
}

// contentOf leaves out what the API server and the controllers write.
func contentOf(object unstructured.Unstructured) map[string]any {
	content := object.DeepCopy().Object
	delete(content, "metadata")
	delete(content, "status")
	return content
}

// runs returns the ReplicaSet that has the Pods of the Deployment: all of them, and ready.
func (o *operator) runs() (replicaSet string, d *appsv1.Deployment) {
	o.t.Helper()
	apps := o.Admin.AppsV1()
	d, err := apps.Deployments(home).Get(o.t.Context(), deployed, metav1.GetOptions{})
	require.NoError(o.t, err)
	require.Equal(o.t, d.Generation, d.Status.ObservedGeneration)
	require.Equal(o.t, *d.Spec.Replicas, d.Status.AvailableReplicas)
	sets, err := apps.ReplicaSets(home).List(o.t.Context(), metav1.ListOptions{
		LabelSelector: metav1.FormatLabelSelector(d.Spec.Selector),
	})
	require.NoError(o.t, err)
	var found []string
	for _, set := range sets.Items {
		if *set.Spec.Replicas > 0 {
			found = append(found, set.Name)
		}
	}
	require.Len(o.t, found, 1)
	return found[0], d
}

// access is a verb, a resource and a namespace.
type access struct{ verb, resource, namespace string }

// has waits until the worker's service account may do what it should, and no more: the
// API server learns of a new Role a moment after it has made it.
func (o *operator) has(rights map[access]bool) {
	o.t.Helper()
	for a, want := range rights {
		require.Eventually(o.t, func() bool {
			review := &authorizationv1.SubjectAccessReview{Spec: authorizationv1.SubjectAccessReviewSpec{
				User: "system:serviceaccount:" + home + ":fleet-egressfleet",
				ResourceAttributes: &authorizationv1.ResourceAttributes{
					Verb: a.verb, Resource: a.resource, Namespace: a.namespace,
				},
			}}
			reviews := o.Admin.AuthorizationV1().SubjectAccessReviews()
			answer, err := reviews.Create(o.t.Context(), review, metav1.CreateOptions{})
			return err == nil && answer.Status.Allowed == want
		}, soon, tick, "%v: %t", a, want)
	}
}

// kept fails where an object that was there is another one now: made anew, for want of a
// way to change it.
func kept(t *testing.T, before, after map[string]thing) {
	t.Helper()
	for name, was := range before {
		if is, there := after[name]; there {
			require.Equal(t, was.uid, is.uid, name)
		}
	}
}

// minimal are the values that the install of the page sets.
const minimal = `installation: production
temporal: {address: "temporal-frontend.temporal:7233"}
api: {tokensFile: {secret: egressfleet-api-tokens}}
`

const (
	inCluster = `providers:
- name: kubernetes
  type: kubernetes
  rbac: {create: true}
  kubernetes: {namespace: egress, clusterRanges: [10.244.0.0/16]}
`
	moved = `providers:
- name: kubernetes
  type: kubernetes
  rbac: {create: true, nodes: true}
  kubernetes: {namespace: egress, formerNamespaces: [egress-old], clusterRanges: [10.244.0.0/16]}
`
	google = `- name: gcp
  type: gcp
  secret: gcp-key
  gcp: {project: example-proj, zones: [us-central1-a], credentialsFile: /etc/egressfleet/providers/gcp/key.json}
`
	release = "image: {tag: 1.2.3}\nconfig: {log: {level: debug}}\n"
	apart   = "together: false\noutside: {enabled: true}\nnetworkPolicy: {enabled: true}\nworker: {replicas: 3}\n"
)

func TestAReleaseIsUpgradedAndRolledBackAsThePageSays(t *testing.T) {
	t.Parallel()
	o := newOperator(t)
	o.types("helm install")
	o.upgrades(minimal) // the same by a file, and it waits
	bare := o.things()
	o.has(map[access]bool{{"create", "pods", "egress"}: false})
	o.getsProviders(bare)
	o.isReleased()
	o.run("helm rollback fleet 2 --wait -n " + home)
	require.Equal(t, contents(bare), contents(o.things()))
	o.has(map[access]bool{{"create", "pods", "egress"}: false, {"get", "nodes", ""}: false})
}

// getsProviders gives the worker its first provider, and then changes it.
func (o *operator) getsProviders(bare map[string]thing) {
	o.t.Helper()
	bareSet, _ := o.runs()
	o.upgrades(minimal + inCluster)
	with := o.things()
	kept(o.t, bare, with)
	withSet, d := o.runs()
	require.NotEqual(o.t, bareSet, withSet, "the Pods have the token of the account now")
	require.True(o.t, *d.Spec.Template.Spec.AutomountServiceAccountToken)
	o.has(map[access]bool{
		{"create", "pods", "egress"}: true, {"create", "pods", "egress-old"}: false, {"get", "nodes", ""}: false,
	})

	o.upgrades(minimal + moved)
	changed := o.things()
	kept(o.t, with, changed)
	set, now := o.runs()
	require.Equal(o.t, withSet, set, "another entry rolls no Pod")
	require.Equal(o.t, d.Generation, now.Generation)
	const configuration = "ConfigMap egressfleet/fleet-egressfleet"
	require.NotEqual(o.t, with[configuration].content, changed[configuration].content)
	o.has(map[access]bool{{"list", "pods", "egress-old"}: true, {"get", "nodes", ""}: true})
}

// isReleased brings another image and setting, and a Secret; then the roles apart, which
// is taken back.
func (o *operator) isReleased() {
	o.t.Helper()
	before := o.things()
	oldSet, old := o.runs()
	o.upgrades(minimal + release + moved + google)
	after := o.things()
	kept(o.t, before, after)
	newSet, d := o.runs()
	require.NotEqual(o.t, oldSet, newSet)
	require.Equal(o.t, "ghcr.io/egressfleet/worker:1.2.3", d.Spec.Template.Spec.Containers[0].Image)
	require.NotEqual(o.t, checksum(old), checksum(d))
	require.Contains(o.t, mounted(d), "/etc/egressfleet/providers/gcp")

	o.upgrades(minimal + release + moved + google + apart)
	split := o.things()
	kept(o.t, after, split)
	require.Contains(o.t, split, "Deployment egressfleet/fleet-egressfleet-api")
	require.Contains(o.t, split, "NetworkPolicy egressfleet/fleet-egressfleet")
	o.serve("api")

	o.types("helm rollback")
	back := o.things()
	kept(o.t, split, back)
	require.Equal(o.t, contents(after), contents(back))
	set, _ := o.runs()
	require.Equal(o.t, newSet, set, "the Pods are made of what they were made of")
	o.serve("worker")
	o.has(map[access]bool{{"create", "pods", "egress-old"}: true, {"get", "secrets", "egress"}: false})
}

func contents(things map[string]thing) map[string]map[string]any {
	found := map[string]map[string]any{}
	for name, one := range things {
		found[name] = one.content
	}
	return found
}

func checksum(d *appsv1.Deployment) string { return d.Spec.Template.Annotations["checksum/config"] }

func mounted(d *appsv1.Deployment) (paths []string) {
	for _, m := range d.Spec.Template.Spec.Containers[0].VolumeMounts {
		paths = append(paths, m.MountPath)
	}
	return paths
}

// serve waits until the Service has the Pods of one component, and those alone.
func (o *operator) serve(component string) {
	o.t.Helper()
	service, err := o.Admin.CoreV1().Services(home).Get(o.t.Context(), "fleet-egressfleet-api", metav1.GetOptions{})
	require.NoError(o.t, err)
	selector := metav1.FormatLabelSelector(&metav1.LabelSelector{MatchLabels: service.Spec.Selector})
	require.Eventually(o.t, func() bool {
		pods, err := o.Admin.CoreV1().Pods(home).List(o.t.Context(), metav1.ListOptions{LabelSelector: selector})
		found := map[string]bool{}
		if err == nil {
			for _, pod := range pods.Items {
				found[pod.Labels["app.kubernetes.io/component"]] = true
			}
		}
		return len(found) == 1 && found[component]
	}, soon, tick, "the Pods of %s", component)
}
