package kubernetes

import (
	"context"

	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// api is what the provider asks of an API server, in the shapes of client-go's typed
// clients. Those themselves know every group that Kubernetes has, which is a third of a
// worker's binary, and of the memory that its pages take.
type api interface {
	Pods(namespace string) podClient
	ConfigMaps(namespace string) configMapClient
	Nodes() nodeClient
	NetworkPolicies(namespace string) policyClient
	SelfSubjectAccessReviews() reviewClient
	// Raw returns the answer at a path such as /readyz.
	Raw(ctx context.Context, path string) ([]byte, error)
}

type (
	getter[T any] interface {
		Get(ctx context.Context, name string, options metav1.GetOptions) (*T, error)
	}
	creator[T any] interface {
		Create(ctx context.Context, object *T, options metav1.CreateOptions) (*T, error)
	}
	podClient interface {
		getter[corev1.Pod]
		creator[corev1.Pod]
		List(ctx context.Context, options metav1.ListOptions) (*corev1.PodList, error)
		Delete(ctx context.Context, name string, options metav1.DeleteOptions) error
	}
	configMapClient interface {
		getter[corev1.ConfigMap]
		creator[corev1.ConfigMap]
	}
	nodeClient   = getter[corev1.Node]
	policyClient interface {
		getter[networkingv1.NetworkPolicy]
		creator[networkingv1.NetworkPolicy]
		Update(ctx context.Context, object *networkingv1.NetworkPolicy, options metav1.UpdateOptions) (
			*networkingv1.NetworkPolicy, error)
	}
	reviewClient = creator[authorizationv1.SelfSubjectAccessReview]
)
