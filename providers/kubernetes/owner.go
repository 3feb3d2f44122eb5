package kubernetes

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/egressfleet/egressfleet/providers"
)

// ownerName is the ConfigMap that owns everything of an installation in a namespace:
// whoever deletes it deletes all of that. An installation is a label, so that the dot
// keeps the name apart from that of a policy.
func ownerName(installation string) string { return "egressfleet." + installation }

func ownerMap(namespace, installation string) *corev1.ConfigMap {
	return &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{
			Name: ownerName(installation), Namespace: namespace, Labels: ownLabels(installation),
		},
		Data: map[string]string{
			"about": "The owner of all that egressfleet's installation " + installation +
				" has in this namespace. Deleting it deletes every proxy of it here.",
		},
	}
}

// ownLabels mark what a namespace has once. Without a UID they are nobody's instance.
func ownLabels(installation string) map[string]string {
	return map[string]string{
		providers.MarkManaged: providers.MarkManagedYes, providers.MarkInstallation: installation,
	}
}

// ensureOwner returns the reference to the owner. It is asked for at every create: a
// Pod of an owner that was deleted and made again would be collected at once.
func (p *Provider) ensureOwner(ctx context.Context, namespace string) (metav1.OwnerReference, error) {
	found, err := p.readOwner(ctx, namespace)
	if apierrors.IsNotFound(err) {
		found, err = call(ctx, p, func(ctx context.Context, c api) (*corev1.ConfigMap, error) {
			return c.ConfigMaps(namespace).Create(ctx, ownerMap(namespace, p.installation), metav1.CreateOptions{})
		})
		if apierrors.IsAlreadyExists(err) {
			found, err = p.readOwner(ctx, namespace)
		}
	}
	if err != nil {
		return metav1.OwnerReference{}, fmt.Errorf("the owner of the installation: %w", err)
	}
	return ownerReference(found, p.installation)
}

func (p *Provider) readOwner(ctx context.Context, namespace string) (*corev1.ConfigMap, error) {
	return call(ctx, p, func(ctx context.Context, c api) (*corev1.ConfigMap, error) {
		return c.ConfigMaps(namespace).Get(ctx, ownerName(p.installation), metav1.GetOptions{})
	})
}

func ownerReference(m *corev1.ConfigMap, installation string) (metav1.OwnerReference, error) {
	switch {
	case m.UID == "" || m.Name != ownerName(installation):
		return metav1.OwnerReference{}, transient("the answer is no ConfigMap %q", ownerName(installation))
	case m.DeletionTimestamp != nil:
		return metav1.OwnerReference{}, transient("the ConfigMap %q, which owns the Pods, is being deleted", m.Name)
	case m.Labels[providers.MarkInstallation] != installation:
		return metav1.OwnerReference{}, permanent("the ConfigMap %q has the label %s=%q, want %q: it is somebody else's",
			m.Name, providers.MarkInstallation, m.Labels[providers.MarkInstallation], installation)
	}
	return metav1.OwnerReference{APIVersion: "v1", Kind: "ConfigMap", Name: m.Name, UID: m.UID}, nil
}
