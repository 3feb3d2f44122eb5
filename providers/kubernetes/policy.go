package kubernetes

import (
	"context"
	"fmt"
	"net/netip"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/egressfleet/egressfleet/providers"
)

// policyName is the NetworkPolicy of a provider in a namespace. One serves all its Pods:
// they admit the same clients, and have no other port open than the proxy's.
func policyName(installation, provider string) string {
	return ownerName(installation) + "." + provider
}

func networkPolicy(namespace, installation, provider string, clients []netip.Prefix) *networkingv1.NetworkPolicy {
	peers := make([]networkingv1.NetworkPolicyPeer, len(clients))
	for i, prefix := range clients {
		peers[i] = networkingv1.NetworkPolicyPeer{IPBlock: &networkingv1.IPBlock{CIDR: prefix.String()}}
	}
	selector := ownLabels(installation)
	selector[labelProvider] = provider
	return &networkingv1.NetworkPolicy{
		ObjectMeta: metav1.ObjectMeta{
			Name: policyName(installation, provider), Namespace: namespace, Labels: ownLabels(installation),
		},
		Spec: networkingv1.NetworkPolicySpec{
			PodSelector: metav1.LabelSelector{MatchLabels: selector},
			PolicyTypes: []networkingv1.PolicyType{networkingv1.PolicyTypeIngress},
			Ingress: []networkingv1.NetworkPolicyIngressRule{{
				From:  peers,
				Ports: []networkingv1.NetworkPolicyPort{{Protocol: new(corev1.ProtocolTCP)}},
			}},
		},
	}
}

// ensurePolicy makes the policy, or changes one that says something else. It comes
// before the Pod, which is then never without it.
func (p *Provider) ensurePolicy(ctx context.Context, namespace string, owner metav1.OwnerReference) error {
	want := networkPolicy(namespace, p.installation, p.name, p.set.ranges.clients)
	want.OwnerReferences = []metav1.OwnerReference{owner}
	found, err := call(ctx, p, func(ctx context.Context, c api) (*networkingv1.NetworkPolicy, error) {
		return c.NetworkPolicies(namespace).Get(ctx, want.Name, metav1.GetOptions{})
	})
	switch {
	case apierrors.IsNotFound(err):
		err = p.makePolicy(ctx, want)
	case err == nil:
		err = p.changePolicy(ctx, found, want)
	}
	if err != nil {
		return fmt.Errorf("the NetworkPolicy %q: %w", want.Name, err)
	}
	return nil
}

func (p *Provider) makePolicy(ctx context.Context, want *networkingv1.NetworkPolicy) error {
	_, err := call(ctx, p, func(ctx context.Context, c api) (*networkingv1.NetworkPolicy, error) {
		return c.NetworkPolicies(want.Namespace).Create(ctx, want, metav1.CreateOptions{})
	})
	if apierrors.IsAlreadyExists(err) {
		return nil // another create was faster, from the same configuration
	}
	return err
}

func (p *Provider) changePolicy(ctx context.Context, found, want *networkingv1.NetworkPolicy) error {
	if found.Name != want.Name {
		return transient("the answer is no NetworkPolicy %q", want.Name)
	}
	if found.Labels[providers.MarkInstallation] != p.installation {
		return permanent("it has the label %s=%q, want %q: it is somebody else's",
			providers.MarkInstallation, found.Labels[providers.MarkInstallation], p.installation)
	}
	if equality.Semantic.DeepEqual(found.Spec, want.Spec) {
		return nil
	}
	change := found.DeepCopy()
	change.Spec, change.OwnerReferences = want.Spec, want.OwnerReferences
	_, err := call(ctx, p, func(ctx context.Context, c api) (*networkingv1.NetworkPolicy, error) {
		return c.NetworkPolicies(want.Namespace).Update(ctx, change, metav1.UpdateOptions{})
	})
	return err
}
