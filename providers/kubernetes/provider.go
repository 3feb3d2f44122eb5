package kubernetes

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/egressfleet/egressfleet/providers"
)

// Type is the kind of provider, as the configuration names it.
const Type = "kubernetes"

var (
	_ providers.Provider     = (*Provider)(nil)
	_ providers.Inventorier  = (*Provider)(nil)
	_ providers.Checker      = (*Provider)(nil)
	_ providers.Profiler     = (*Provider)(nil)
	_ providers.Credentialed = (*Provider)(nil)
	_ io.Closer              = (*Provider)(nil)
)

// Provider keeps instances as Pods of a cluster. It remembers nothing about them.
type Provider struct {
	name         string
	installation string
	set          settings
	connection   connection
	callTime     time.Duration // of each call to the API server
	now          func() time.Time
}

// New returns the provider that is configured under a name. It asks nobody; its errors
// are about the configuration, and name the field and the value. Credentials that are
// there must make sense; one that is not there yet is missed at the call.
func New(ctx context.Context, name, installation string, cfg Config) (*Provider, error) {
	if !isLabel(name) {
		return nil, fmt.Errorf("name: %q is not a DNS label", name)
	}
	if !isLabel(installation) {
		return nil, fmt.Errorf("installation: %q is not a DNS label", installation)
	}
	set, err := cfg.resolve()
	if err != nil {
		return nil, err
	}
	if _, err := set.access.read(); err != nil && classify(err, "", "") == providers.ErrPermanent {
		return nil, err
	}
	if set.access.insecure {
		providers.Logger(ctx).LogAttrs(ctx, slog.LevelWarn, "kubernetes takes any certificate for the API server's",
			slog.String("provider", name), slog.String("key", "insecureSkipTLSVerify"))
	}
	return &Provider{
		name: name, installation: installation, set: set, callTime: callTime, now: time.Now,
		connection: &dialer{access: set.access, limiter: newPace(set.qps, set.burst)},
	}, nil
}

// CredentialFiles names the kubeconfig, or token and authority of the service account.
func (p *Provider) CredentialFiles() []string { return p.set.access.files() }

// Close lets go of the connections that no call uses any more.
func (p *Provider) Close() error {
	p.connection.close()
	return nil
}

// Create makes the Pod of a request, and returns once the API server has it.
func (p *Provider) Create(ctx context.Context, req providers.CreateRequest) (string, error) {
	id := placeOf(p.set, req).id()
	if err := p.create(ctx, req); err != nil {
		return "", p.fail(ctx, providers.OpCreate, id, err)
	}
	p.report(ctx, providers.OpCreate, id, slog.Int("attempt", req.Attempt),
		slog.Int("cloudInitBytesIgnored", len(req.CloudInit)))
	return id, nil
}

// Get reads the Pod, never from a cache of the API server.
func (p *Provider) Get(ctx context.Context, id string) (*providers.Instance, error) {
	at, err := parseID(id)
	if err != nil {
		return nil, p.fail(ctx, providers.OpGet, id, err)
	}
	pod, err := p.readPod(ctx, at)
	if err != nil {
		return nil, p.fail(ctx, providers.OpGet, id, err)
	}
	instance := observe(pod, p.now())
	p.report(ctx, providers.OpGet, id,
		slog.String("state", string(instance.State)), slog.String("reason", instance.Reason))
	return &instance, nil
}

// Delete asks for the end of the Pod, and returns before it is gone.
func (p *Provider) Delete(ctx context.Context, id string) error {
	at, err := parseID(id)
	if err == nil {
		err = p.delete(ctx, at)
	}
	if err != nil {
		return p.fail(ctx, providers.OpDelete, id, err)
	}
	p.report(ctx, providers.OpDelete, id)
	return nil
}

// ListByTag returns the instances of Inventory.
func (p *Provider) ListByTag(ctx context.Context) ([]providers.Instance, error) {
	inventory, err := p.Inventory(ctx)
	return inventory.Instances, err
}

// readPod returns a Pod of that name. The read is a consistent one: without a resource
// version the API server asks its store.
func (p *Provider) readPod(ctx context.Context, at place) (*corev1.Pod, error) {
	pod, err := call(ctx, p, func(ctx context.Context, c api) (*corev1.Pod, error) {
		return c.Pods(at.namespace).Get(ctx, at.name, metav1.GetOptions{})
	})
	if err != nil {
		return nil, err
	}
	return pod, checkPod(pod, at)
}

// checkPod refuses an answer that is no Pod: "{}" with the status 200 decodes as one.
func checkPod(pod *corev1.Pod, at place) error {
	if pod.Name != at.name || pod.Namespace != at.namespace || pod.UID == "" {
		return transient("the answer is no Pod %q", at.id())
	}
	return nil
}

// fail classifies an error and writes the one line about it.
func (p *Provider) fail(ctx context.Context, op, id string, err error) error {
	name := ""
	if at, parseErr := parseID(id); parseErr == nil {
		name = at.name
	}
	class, err := classify(err, op, name), hinted(err)
	p.logger(ctx).LogAttrs(ctx, providers.LevelOutcome, "kubernetes "+op+" failed",
		slog.String("providerID", id), slog.String("class", string(class)), slog.String("error", err.Error()))
	return providers.Wrap(class, op, p.name, id, err)
}

func (p *Provider) report(ctx context.Context, op, id string, attrs ...slog.Attr) {
	attrs = append(attrs, slog.String("providerID", id))
	p.logger(ctx).LogAttrs(ctx, providers.LevelOutcome, "kubernetes "+op, attrs...)
}

func (p *Provider) logger(ctx context.Context) *slog.Logger {
	return providers.Logger(ctx).With(slog.String("provider", p.name))
}
