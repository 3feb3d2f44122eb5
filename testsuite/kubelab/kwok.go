//go:build linux

package kubelab

import (
	"context"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// kwokNode is the annotation of nodes that kwok plays.
const kwokNode = "kwok.x-k8s.io/node"

// kwokUser is whom kwok asks as.
const kwokUser = "kwok"

// restrainKwok has the API server refuse kwok the delete of a Pod that is not on its way
// out. A kubelet deletes the Pod of a UID; kwok deletes by name alone, now and then twice,
// and would take the Pod that has the name by then.
func (c *Cluster) restrainKwok(ctx context.Context) error {
	const name = "kwok-deletes-what-is-dying"
	rules := c.Admin.AdmissionregistrationV1()
	_, err := rules.ValidatingAdmissionPolicies().Create(ctx, &admissionv1.ValidatingAdmissionPolicy{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: admissionv1.ValidatingAdmissionPolicySpec{
			MatchConstraints: &admissionv1.MatchResources{ResourceRules: []admissionv1.NamedRuleWithOperations{{
				RuleWithOperations: admissionv1.RuleWithOperations{
					Operations: []admissionv1.OperationType{admissionv1.Delete},
					Rule:       admissionv1.Rule{APIGroups: []string{""}, APIVersions: []string{"v1"}, Resources: []string{"pods"}},
				},
			}}},
			MatchConditions: []admissionv1.MatchCondition{
				{Name: "kwok", Expression: "request.userInfo.username == '" + kwokUser + "'"},
			},
			Validations: []admissionv1.Validation{
				{Expression: "has(oldObject.metadata.deletionTimestamp)", Message: "the Pod is not being deleted"},
			},
		},
	}, metav1.CreateOptions{})
	if err != nil {
		return err
	}
	_, err = rules.ValidatingAdmissionPolicyBindings().Create(ctx, &admissionv1.ValidatingAdmissionPolicyBinding{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: admissionv1.ValidatingAdmissionPolicyBindingSpec{
			PolicyName: name, ValidationActions: []admissionv1.ValidationAction{admissionv1.Deny},
		},
	}, metav1.CreateOptions{})
	return err
}

// AddNode adds a node that kwok plays, in a zone, and waits until it takes Pods.
func (c *Cluster) AddNode(ctx context.Context, name, zone string) error {
	room := corev1.ResourceList{
		corev1.ResourceCPU: resource.MustParse("1000"), corev1.ResourceMemory: resource.MustParse("1Ti"),
		corev1.ResourcePods: resource.MustParse("1000"), corev1.ResourceEphemeralStorage: resource.MustParse("1Ti"),
	}
	_, err := c.Admin.CoreV1().Nodes().Create(ctx, &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{
			Name: name, Annotations: map[string]string{kwokNode: "fake"},
			Labels: map[string]string{corev1.LabelHostname: name, corev1.LabelTopologyZone: zone},
		},
		Status: corev1.NodeStatus{Capacity: room, Allocatable: room},
	}, metav1.CreateOptions{})
	if err != nil {
		return err
	}
	return c.WaitNode(ctx, name)
}
