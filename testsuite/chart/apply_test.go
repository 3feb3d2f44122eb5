//go:build integration && linux

package chart_test

import (
	"context"
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/discovery/cached/memory"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/restmapper"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/egressfleet/egressfleet/testsuite/kubelab"
)

const (
	soon = 2 * time.Minute // generous: the machine may be busy
	tick = 100 * time.Millisecond
)

// restricted has the API server refuse every Pod that the profile does not allow.
var restricted = map[string]string{"pod-security.kubernetes.io/enforce": "restricted"}

// cluster is an API server and the controllers; without nodes of kwok no Pod runs.
type cluster struct {
	*kubelab.Cluster
	client dynamic.Interface
	mapper *restmapper.DeferredDiscoveryRESTMapper
}

func newCluster(t *testing.T, o kubelab.Options) *cluster {
	t.Helper()
	o.Dir = t.TempDir()
	c, err := kubelab.Start(t.Context(), o)
	require.NoError(t, err)
	t.Cleanup(c.Stop)
	config, err := clientcmd.BuildConfigFromFlags("", c.AdminFile())
	require.NoError(t, err)
	config.QPS = -1
	client, err := dynamic.NewForConfig(config)
	require.NoError(t, err)
	mapper := restmapper.NewDeferredDiscoveryRESTMapper(memory.NewMemCacheClient(c.Admin.Discovery()))
	return &cluster{Cluster: c, client: client, mapper: mapper}
}

// create makes an object; a field that the API server does not know is an error.
func (c *cluster) create(ctx context.Context, object *unstructured.Unstructured, dryRun ...string) error {
	kind := object.GroupVersionKind()
	mapping, err := c.mapper.RESTMapping(kind.GroupKind(), kind.Version)
	if err != nil {
		return err
	}
	var at dynamic.ResourceInterface = c.client.Resource(mapping.Resource)
	if mapping.Scope.Name() == "namespace" {
		at = c.client.Resource(mapping.Resource).Namespace(object.GetNamespace())
	}
	_, err = at.Create(ctx, object, metav1.CreateOptions{DryRun: dryRun, FieldValidation: metav1.FieldValidationStrict})
	return err
}

// install makes all that a case renders, in namespaces that are there.
func (c *cluster) install(t *testing.T, name string) (objects []*unstructured.Unstructured) {
	t.Helper()
	objects = render(t, name)
	namespaces := map[string]bool{name: true}
	for _, object := range objects {
		if object.GetNamespace() == "" {
			object.SetNamespace(name) // as helm does
		}
		namespaces[object.GetNamespace()] = true
	}
	for namespace := range namespaces {
		require.NoError(t, c.Namespace(t.Context(), namespace, restricted))
	}
	for _, object := range objects {
		require.NoError(t, c.create(t.Context(), object, metav1.DryRunAll), "%s %s", object.GetKind(), object.GetName())
		require.NoError(t, c.create(t.Context(), object), "%s %s", object.GetKind(), object.GetName())
	}
	return objects
}

// crds installs those of the Prometheus operator, and waits until they are served.
func (c *cluster) crds(t *testing.T) {
	t.Helper()
	text, err := os.ReadFile("testdata/crds.yaml")
	require.NoError(t, err)
	for _, crd := range documents(t, string(text)) {
		require.NoError(t, c.create(t.Context(), crd))
	}
	for _, kind := range []string{"ServiceMonitor", "PrometheusRule"} {
		require.Eventually(t, func() bool {
			c.mapper.Reset()
			probe := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{}}}
			probe.SetAPIVersion("monitoring.coreos.com/v1")
			probe.SetKind(kind)
			probe.SetName("probe")
			probe.SetNamespace("default")
			err := c.create(t.Context(), probe, metav1.DryRunAll)
			return err == nil || apierrors.IsInvalid(err)
		}, soon, tick, kind)
	}
}

func TestEveryObjectIsTakenByTheAPIServer(t *testing.T) {
	t.Parallel()
	c := newCluster(t, kubelab.Options{})
	c.crds(t)
	for name := range valueFiles(t) {
		t.Run(name, func(t *testing.T) {
			for _, d := range typed[appsv1.Deployment](t, c.install(t, name), "Deployment") {
				c.hasPods(t, name, d)
			}
		})
	}
	t.Run("and nothing that it does not know", c.refusesWhatIsWrong)
}

// hasPods waits for the Pods of a Deployment: the profile of the namespace allows them.
func (c *cluster) hasPods(t *testing.T, namespace string, d appsv1.Deployment) {
	t.Helper()
	selector := metav1.FormatLabelSelector(d.Spec.Selector)
	require.Eventually(t, func() bool {
		pods, err := c.Admin.CoreV1().Pods(namespace).List(t.Context(), metav1.ListOptions{LabelSelector: selector})
		return err == nil && len(pods.Items) == int(*d.Spec.Replicas)
	}, soon, tick, "the Pods of %s", d.Name)
}

// refusesWhatIsWrong shows that the API server of this test would find a wrong field,
// wherever it is.
func (c *cluster) refusesWhatIsWrong(t *testing.T) {
	for _, object := range render(t, "everything") {
		object.SetNamespace("everything")
		wrong := object.DeepCopy()
		field := []string{"readinesProbe"}
		if _, found := object.Object["spec"]; found {
			field = []string{"spec", "readinesProbe"}
		}
		require.NoError(t, unstructured.SetNestedField(wrong.Object, "x", field...))
		require.ErrorContains(t, c.create(t.Context(), wrong, metav1.DryRunAll), "readinesProbe", object.GetKind())
	}
}
