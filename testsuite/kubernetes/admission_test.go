//go:build integration && linux

package kubernetes

import (
	"testing"

	"github.com/stretchr/testify/require"
	admissionv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/egressfleet/egressfleet/providers"
)

func TestAFullQuotaIsOneAndEndsWhenThereIsRoom(t *testing.T) {
	n := newTenant(t, own(t))
	quotas := n.Admin.CoreV1().ResourceQuotas(n.namespace)
	hard := corev1.ResourceList{corev1.ResourcePods: resource.MustParse("1")}
	_, err := quotas.Create(t.Context(), &corev1.ResourceQuota{
		ObjectMeta: metav1.ObjectMeta{Name: "few"}, Spec: corev1.ResourceQuotaSpec{Hard: hard},
	}, metav1.CreateOptions{})
	require.NoError(t, err)
	require.Eventually(t, func() bool { // a quota that was not counted yet bounds nothing
		q, err := quotas.Get(t.Context(), "few", metav1.GetOptions{})
		return err == nil && len(q.Status.Hard) == 1
	}, soon, tick)

	first, err := n.Create(t.Context(), request(1))
	require.NoError(t, err)
	_, err = n.Create(t.Context(), request(1))
	require.NoError(t, err, "the same again needs no room")
	_, err = n.Create(t.Context(), request(2))
	require.ErrorIs(t, err, providers.ErrQuotaExceeded)
	require.ErrorContains(t, err, "few")
	n.gone(first)
	var second string
	require.Eventually(t, func() bool { // the quota is counted anew some time after a delete
		second, err = n.Create(t.Context(), request(2))
		require.True(t, err == nil || providers.ClassOf(err) == providers.ErrQuotaExceeded, err)
		return err == nil
	}, soon, tick)
	n.gone(second)
}

// A policy of the cluster that refuses Pods needs another configuration; a webhook that
// nobody answers may be there again soon.
func TestAdmissionThatRefusesIsToldFromOneThatIsAway(t *testing.T) {
	c := own(t)
	refused := newTenant(t, c)
	policies := c.Admin.AdmissionregistrationV1().ValidatingAdmissionPolicies()
	_, err := policies.Create(t.Context(), &admissionv1.ValidatingAdmissionPolicy{
		ObjectMeta: metav1.ObjectMeta{Name: "no-proxies"},
		Spec: admissionv1.ValidatingAdmissionPolicySpec{
			MatchConstraints: &admissionv1.MatchResources{ResourceRules: []admissionv1.NamedRuleWithOperations{{
				RuleWithOperations: createsPods(),
			}}},
			Validations: []admissionv1.Validation{{Expression: "false", Message: "no proxies here"}},
		},
	}, metav1.CreateOptions{})
	require.NoError(t, err)
	_, err = c.Admin.AdmissionregistrationV1().ValidatingAdmissionPolicyBindings().Create(t.Context(),
		&admissionv1.ValidatingAdmissionPolicyBinding{
			ObjectMeta: metav1.ObjectMeta{Name: "no-proxies"},
			Spec: admissionv1.ValidatingAdmissionPolicyBindingSpec{
				PolicyName: "no-proxies", ValidationActions: []admissionv1.ValidationAction{admissionv1.Deny},
				MatchResources: &admissionv1.MatchResources{NamespaceSelector: only(refused.namespace)},
			},
		}, metav1.CreateOptions{})
	require.NoError(t, err)
	refused.refuses("no proxies here", providers.ErrPermanent)

	lonely := newTenant(t, c)
	_, err = c.Admin.AdmissionregistrationV1().ValidatingWebhookConfigurations().Create(t.Context(),
		&admissionv1.ValidatingWebhookConfiguration{
			ObjectMeta: metav1.ObjectMeta{Name: "away"},
			Webhooks: []admissionv1.ValidatingWebhook{{
				Name: "away.example.com", AdmissionReviewVersions: []string{"v1"},
				ClientConfig:      admissionv1.WebhookClientConfig{URL: new("https://127.0.0.1:9/")}, // nobody listens there
				Rules:             []admissionv1.RuleWithOperations{createsPods()},
				NamespaceSelector: only(lonely.namespace), FailurePolicy: new(admissionv1.Fail),
				SideEffects: new(admissionv1.SideEffectClassNone),
			}},
		}, metav1.CreateOptions{})
	require.NoError(t, err)
	lonely.refuses("away.example.com", providers.ErrTransient)
}

// refuses repeats a create until the API server applies its rules, and expects a class.
func (n *tenant) refuses(words string, class providers.Class) {
	n.t.Helper()
	require.Eventually(n.t, func() bool {
		id, err := n.Create(n.t.Context(), request(1))
		if err == nil {
			n.gone(id)
			return false
		}
		require.ErrorContains(n.t, err, words)
		require.ErrorIs(n.t, err, class)
		return true
	}, soon, tick)
	require.Empty(n.t, n.pods())
}

func createsPods() admissionv1.RuleWithOperations {
	return admissionv1.RuleWithOperations{
		Operations: []admissionv1.OperationType{admissionv1.Create},
		Rule:       admissionv1.Rule{APIGroups: []string{""}, APIVersions: []string{"v1"}, Resources: []string{"pods"}},
	}
}

// only selects one namespace.
func only(name string) *metav1.LabelSelector {
	return &metav1.LabelSelector{MatchLabels: map[string]string{corev1.LabelMetadataName: name}}
}

// A namespace that is deleted takes its Pods along. Until they are gone they are on their
// way out; then they are gone, and none comes back.
func TestANamespaceThatIsDeletedTakesItsPodsAlong(t *testing.T) {
	c := own(t)
	takeCensus(t, c)
	n := newTenant(t, c)
	req := request(1)
	req.Placement.Zone = "nowhere" // so that no node takes the finalizer away
	id, err := n.Create(t.Context(), req)
	require.NoError(t, err)
	// A Role goes with its namespace, and who may not look knows nothing.
	require.NoError(t, c.GrantEverywhere(t.Context(), user, documentedRules(t)))
	pods := n.Admin.CoreV1().Pods(n.namespace)
	// It keeps the namespace on its way. The scheduler writes, too: an update would conflict with it.
	finalizers := func(patch string) {
		_, err := pods.Patch(t.Context(), request(1).Name, types.MergePatchType,
			[]byte(`{"metadata":{"finalizers":`+patch+`}}`), metav1.PatchOptions{})
		require.NoError(t, err)
	}
	finalizers(`["example.com/wait"]`)

	require.NoError(t, n.Admin.CoreV1().Namespaces().Delete(t.Context(), n.namespace, metav1.DeleteOptions{}))
	require.Eventually(t, func() bool {
		inst, err := n.Get(t.Context(), id)
		require.NoError(t, err, "what is on its way out is still there")
		return inst.Deleting && inst.State != providers.StateRunning
	}, soon, tick)
	_, err = n.Create(t.Context(), request(2))
	require.Error(t, err)
	require.Contains(t, []providers.Class{providers.ErrPermanent, providers.ErrTransient}, providers.ClassOf(err), err)
	require.NoError(t, n.Delete(t.Context(), id), "it is asked for already")

	finalizers("null")
	require.Eventually(t, func() bool {
		_, err := n.Admin.CoreV1().Namespaces().Get(t.Context(), n.namespace, metav1.GetOptions{})
		return apierrors.IsNotFound(err)
	}, soon, tick)
	_, err = n.Get(t.Context(), id)
	require.ErrorIs(t, err, providers.ErrNotFound)
	require.NoError(t, n.Delete(t.Context(), id))
	_, err = n.Create(t.Context(), request(2))
	require.ErrorIs(t, err, providers.ErrPermanent)
	require.ErrorContains(t, err, n.namespace)
}
