package kubernetes

import (
	"context"
	"crypto/sha256"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/egressfleet/egressfleet/providers"
)

// Impatient makes every call of a provider end soon.
func Impatient(p *Provider, within time.Duration) { p.callTime = within }

// Watch shows the context of every later call.
func Watch(p *Provider, see func(context.Context)) { p.connection = watching{p.connection, see} }

type watching struct {
	connection
	see func(context.Context)
}

func (w watching) client(ctx context.Context) (api, [sha256.Size]byte, error) {
	w.see(ctx)
	return w.connection.client(ctx)
}

// Classify is the class of an error of an operation on an instance of that name.
func Classify(err error, op, name string) providers.Class { return classify(err, op, name) }

// Hint is what to do about an error of certificates.
func Hint(err error) string { return untrusted(err) }

// SquidConf is the configuration of the proxy that a provider makes for a port.
func SquidConf(p *Provider, port int) string { return squidConf(port, p.set.ranges) }

// At sets the clock of a provider.
func At(p *Provider, now func() time.Time) { p.now = now }

// BuildPod is the Pod that a provider makes for a request.
func BuildPod(p *Provider, req providers.CreateRequest) (*corev1.Pod, error) {
	if err := checkRequest(p.set, req); err != nil {
		return nil, err
	}
	owner := metav1.OwnerReference{APIVersion: "v1", Kind: "ConfigMap", Name: ownerName(p.installation), UID: "owner"}
	return buildPod(plan{provider: p.name, installation: p.installation, set: p.set, owner: owner, req: req})
}

// With puts client-go's own fake, or any other client, in the place of a provider's.
func With(p *Provider, client kubernetes.Interface) { p.connection = given{client} }

type given struct{ kubernetes.Interface }

func (g given) client(context.Context) (api, [sha256.Size]byte, error) {
	return g, [sha256.Size]byte{}, nil
}

func (given) close() {}

func (g given) Pods(namespace string) podClient { return g.CoreV1().Pods(namespace) }

func (g given) ConfigMaps(namespace string) configMapClient { return g.CoreV1().ConfigMaps(namespace) }

func (g given) Nodes() nodeClient { return g.CoreV1().Nodes() }

func (g given) NetworkPolicies(namespace string) policyClient {
	return g.NetworkingV1().NetworkPolicies(namespace)
}

func (g given) SelfSubjectAccessReviews() reviewClient {
	return g.AuthorizationV1().SelfSubjectAccessReviews()
}

func (g given) Raw(ctx context.Context, path string) ([]byte, error) {
	return g.Discovery().RESTClient().Get().AbsPath(path).DoRaw(ctx)
}
