package kubernetes_test

import (
	"encoding/json"
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/egressfleet/egressfleet/providers"
	"github.com/egressfleet/egressfleet/providers/kubernetes"
	"github.com/egressfleet/egressfleet/testsuite/kubeapi"
)

const (
	owner  = "egressfleet.production"
	policy = "egressfleet.production.kubernetes"
)

// taken answers that the name is taken, after somebody has taken it.
func (l *lab) taken(t *testing.T, pod *corev1.Pod) kubeapi.Fault {
	return kubeapi.Only("create", "pods", func(w http.ResponseWriter, r *http.Request, a kubeapi.Action) bool {
		if pod != nil {
			l.server.Put(t, kubeapi.PodIn(namespace, pod.Name), pod)
		}
		exists := apierrors.NewAlreadyExists(schema.GroupResource{Resource: "pods"}, a.Name)
		return kubeapi.Answer(exists)(w, r, a)
	})
}

// AlreadyExists is success for nobody but the one whose UID the Pod has.
func TestANameThatWasTakenMeanwhile(t *testing.T) {
	t.Parallel()
	req := request("u")
	foreign, bare, dying := marked(req), marked(req), marked(req)
	foreign.Labels[providers.MarkUID] = "other"
	bare.Labels = nil
	dying.DeletionTimestamp = &metav1.Time{Time: time.Now()}
	dying.Finalizers = []string{"example.com/hold"}
	for name, c := range map[string]struct {
		pod  *corev1.Pod
		want providers.Class
	}{
		"by ourselves":                     {marked(req), ""},
		"by somebody else":                 {foreign, providers.ErrPermanent},
		"by nobody we know":                {bare, providers.ErrPermanent},
		"by ourselves, and on its way out": {dying, providers.ErrTransient},
		"and is free again":                {nil, providers.ErrTransient},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l := newLab(t)
			l.server.Break(l.taken(t, c.pod))
			id, err := l.Create(t.Context(), req)
			require.Equal(t, c.want, providers.ClassOf(err), "%v", err)
			if c.want == "" {
				require.Equal(t, namespace+"/"+req.Name, id)
			}
		})
	}
}

// The quota is used up by the Pod itself, whose create was never answered.
func TestAFullQuotaDoesNotHideTheOwnPod(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	heal := l.server.Break(kubeapi.Only("create", "pods", l.server.LosesTheAnswer))
	_, err := l.Create(t.Context(), request("u"))
	require.ErrorIs(t, err, providers.ErrTransient)
	heal()
	l.server.Break(kubeapi.Only("create", "pods", kubeapi.Answer(kubeapi.OverQuota())))
	_, err = l.Create(t.Context(), request("u"))
	require.NoError(t, err)
	_, err = l.Create(t.Context(), request("v"))
	require.ErrorIs(t, err, providers.ErrQuotaExceeded)
}

// A webhook strips labels: the Pod that no listing would find is taken away at once.
func TestAPodWithoutItsMarksIsTakenAway(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	req := request("u")
	stripped := marked(req)
	delete(stripped.Labels, providers.MarkUID)
	l.server.Break(kubeapi.Only("create", "pods", func(w http.ResponseWriter, r *http.Request, a kubeapi.Action) bool {
		l.server.Put(t, kubeapi.PodIn(namespace, req.Name), stripped)
		body, err := json.Marshal(l.server.Pods(t)[0])
		require.NoError(t, err)
		return kubeapi.Body(http.StatusCreated, map[string]string{"Content-Type": "application/json"}, body)(w, r, a)
	}))
	_, err := l.Create(t.Context(), req)
	require.ErrorIs(t, err, providers.ErrPermanent)
	require.ErrorContains(t, err, "admission webhook")
	require.NotNil(t, l.server.Pods(t)[0].DeletionTimestamp)
}

func TestPodsAreOwnedByOneObjectOfTheInstallation(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	for _, uid := range []string{"a", "b"} {
		_, err := l.Create(t.Context(), request(uid))
		require.NoError(t, err)
	}
	at := kubeapi.Action{Resource: "configmaps", Namespace: namespace, Name: owner}
	found := kubeapi.Get[*corev1.ConfigMap](t, l.server, at)
	require.Equal(t, installation, found.Labels[providers.MarkInstallation])
	rule := kubeapi.Get[*networkingv1.NetworkPolicy](t, l.server, policyAt())
	require.Equal(t, found.UID, rule.OwnerReferences[0].UID)
	pods := l.server.Pods(t)
	require.Len(t, pods, 2)
	for _, pod := range pods {
		require.Equal(t, []metav1.OwnerReference{{APIVersion: "v1", Kind: "ConfigMap", Name: owner, UID: found.UID}},
			pod.OwnerReferences)
	}
}

func policyAt() kubeapi.Action {
	return kubeapi.Action{Group: "networking.k8s.io", Resource: "networkpolicies", Namespace: namespace, Name: policy}
}

// An owner of another UID would have the Pod collected; one of somebody else's, too.
func TestOwnersThatAreNone(t *testing.T) {
	t.Parallel()
	at := kubeapi.Action{Resource: "configmaps", Namespace: namespace, Name: owner}
	made := func() *corev1.ConfigMap {
		return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{
			Name: owner, Namespace: namespace, Labels: map[string]string{providers.MarkInstallation: installation},
		}}
	}
	foreign, dying := made(), made()
	foreign.Labels = nil
	dying.DeletionTimestamp, dying.Finalizers = &metav1.Time{Time: time.Now()}, []string{"foregroundDeletion"}
	for name, c := range map[string]struct {
		owner *corev1.ConfigMap
		want  providers.Class
	}{
		"somebody else's": {foreign, providers.ErrPermanent},
		"on its way out":  {dying, providers.ErrTransient},
		"ours":            {made(), ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l := newLab(t)
			l.server.Put(t, at, c.owner)
			_, err := l.Create(t.Context(), request("u"))
			require.Equal(t, c.want, providers.ClassOf(err), "%v", err)
		})
	}
}

func TestTheNetworkPolicyAdmitsClientsAndProbers(t *testing.T) {
	t.Parallel()
	l := newLab(t, func(cfg *kubernetes.Config) { cfg.Probers = []string{"192.0.2.7/32"} })
	_, err := l.Create(t.Context(), request("u"))
	require.NoError(t, err)
	require.Equal(t, []string{"10.244.0.0/16", "192.0.2.7/32"}, admitted(t, l))
	found := kubeapi.Get[*networkingv1.NetworkPolicy](t, l.server, policyAt())
	require.Equal(t, []networkingv1.PolicyType{networkingv1.PolicyTypeIngress}, found.Spec.PolicyTypes)
	require.Equal(t, map[string]string{
		providers.MarkManaged: "true", providers.MarkInstallation: installation, "proxy-operator-provider": providerName,
	}, found.Spec.PodSelector.MatchLabels)
	for _, pod := range l.server.Pods(t) {
		for key, value := range found.Spec.PodSelector.MatchLabels {
			require.Equal(t, value, pod.Labels[key], "the policy selects the Pod")
		}
	}

	l.cfg.Probers, l.cfg.AllowedClients = nil, []string{"10.20.0.0/16"}
	_, err = l.open(t, installation).Create(t.Context(), request("v"))
	require.NoError(t, err)
	require.Equal(t, []string{"10.20.0.0/16"}, admitted(t, l), "another configuration changes it")
	before := len(l.server.Calls())
	_, err = l.open(t, installation).Create(t.Context(), request("w"))
	require.NoError(t, err)
	require.NotContains(t, l.server.Calls()[before:], "update networkpolicies", "what is right stays")
}

// admitted returns the ranges of the policy's one rule.
func admitted(t *testing.T, l *lab) (ranges []string) {
	t.Helper()
	found := kubeapi.Get[*networkingv1.NetworkPolicy](t, l.server, policyAt())
	require.Len(t, found.Spec.Ingress, 1)
	for _, from := range found.Spec.Ingress[0].From {
		ranges = append(ranges, from.IPBlock.CIDR)
	}
	return ranges
}

func TestWithoutAPolicyNoneIsAskedFor(t *testing.T) {
	t.Parallel()
	l := newLab(t, func(cfg *kubernetes.Config) { cfg.NetworkPolicy = "none" })
	_, err := l.Create(t.Context(), request("u"))
	require.NoError(t, err)
	for _, call := range l.server.Calls() {
		require.NotContains(t, call, "networkpolicies")
	}
}
