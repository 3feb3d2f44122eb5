package kubernetes

import (
	"context"
	"errors"
	"net/http"

	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/client-go/rest"
)

// wire is an API server by client-go's REST client.
type wire struct {
	parameters                      runtime.ParameterCodec
	core, networking, authorization rest.Interface
}

// newWire returns a client of the groups that are asked. It dials nothing.
func newWire(cfg *rest.Config, client *http.Client) (*wire, error) {
	scheme := runtime.NewScheme()
	metav1.AddToGroupVersion(scheme, schema.GroupVersion{Version: "v1"}) // the Status of an error
	err := errors.Join(corev1.AddToScheme(scheme), networkingv1.AddToScheme(scheme), authorizationv1.AddToScheme(scheme))
	if err != nil {
		return nil, err
	}
	own := *cfg
	own.NegotiatedSerializer = rest.CodecFactoryForGeneratedClient(scheme, serializer.NewCodecFactory(scheme)).
		WithoutConversion()
	w := &wire{parameters: runtime.NewParameterCodec(scheme)}
	for _, group := range []struct {
		to      *rest.Interface
		path    string
		version schema.GroupVersion
	}{
		{&w.core, "/api", corev1.SchemeGroupVersion},
		{&w.networking, "/apis", networkingv1.SchemeGroupVersion},
		{&w.authorization, "/apis", authorizationv1.SchemeGroupVersion},
	} {
		own.APIPath, own.GroupVersion = group.path, &group.version
		if *group.to, err = rest.RESTClientForConfigAndClient(&own, client); err != nil {
			return nil, err
		}
	}
	return w, nil
}

func (w *wire) Pods(namespace string) podClient {
	return pods{kind[corev1.Pod, *corev1.Pod]{w.core, w.parameters, namespace, "pods"}}
}

func (w *wire) ConfigMaps(namespace string) configMapClient {
	return kind[corev1.ConfigMap, *corev1.ConfigMap]{w.core, w.parameters, namespace, "configmaps"}
}

func (w *wire) Nodes() nodeClient {
	return kind[corev1.Node, *corev1.Node]{w.core, w.parameters, "", "nodes"}
}

func (w *wire) NetworkPolicies(namespace string) policyClient {
	return kind[networkingv1.NetworkPolicy, *networkingv1.NetworkPolicy]{
		w.networking, w.parameters, namespace, "networkpolicies",
	}
}

func (w *wire) SelfSubjectAccessReviews() reviewClient {
	return kind[authorizationv1.SelfSubjectAccessReview, *authorizationv1.SelfSubjectAccessReview]{
		w.authorization, w.parameters, "", "selfsubjectaccessreviews",
	}
}

// Raw returns the answer at a path. An error has the server's own words.
func (w *wire) Raw(ctx context.Context, path string) ([]byte, error) {
	result := w.core.Get().AbsPath(path).Do(ctx)
	if err := result.Error(); err != nil { // Raw would not read what the server says
		return nil, err
	}
	return result.Raw()
}

// object is a pointer to a kind of Kubernetes.
type object[T any] interface {
	*T
	runtime.Object
	metav1.Object
}

// kind is the objects of one kind, in a namespace or, where that is empty, in none.
type kind[T any, O object[T]] struct {
	rest            rest.Interface
	parameters      runtime.ParameterCodec
	namespace, name string
}

func (k kind[T, O]) at(request *rest.Request) *rest.Request {
	return request.NamespaceIfScoped(k.namespace, k.namespace != "").Resource(k.name)
}

// Get returns the object of a name.
func (k kind[T, O]) Get(ctx context.Context, name string, options metav1.GetOptions) (*T, error) {
	found := O(new(T))
	err := k.at(k.rest.Get()).Name(name).VersionedParams(&options, k.parameters).Do(ctx).Into(found)
	return found, err
}

// Create makes an object, and returns it as the server has it then.
func (k kind[T, O]) Create(ctx context.Context, wanted *T, options metav1.CreateOptions) (*T, error) {
	made := O(new(T))
	err := k.at(k.rest.Post()).VersionedParams(&options, k.parameters).Body(O(wanted)).Do(ctx).Into(made)
	return made, err
}

// Update puts an object in the place of the one of its name.
func (k kind[T, O]) Update(ctx context.Context, changed *T, options metav1.UpdateOptions) (*T, error) {
	updated := O(new(T))
	err := k.at(k.rest.Put()).Name(O(changed).GetName()).VersionedParams(&options, k.parameters).
		Body(O(changed)).Do(ctx).Into(updated)
	return updated, err
}

// Delete asks for the end of the object of a name.
func (k kind[T, O]) Delete(ctx context.Context, name string, options metav1.DeleteOptions) error {
	return k.at(k.rest.Delete()).Name(name).Body(&options).Do(ctx).Error()
}

type pods struct {
	kind[corev1.Pod, *corev1.Pod]
}

// List returns one page of Pods.
func (p pods) List(ctx context.Context, options metav1.ListOptions) (*corev1.PodList, error) {
	page := new(corev1.PodList)
	err := p.at(p.rest.Get()).VersionedParams(&options, p.parameters).Do(ctx).Into(page)
	return page, err
}
