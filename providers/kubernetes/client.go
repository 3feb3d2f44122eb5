package kubernetes

import (
	"context"
	"crypto/sha256"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/url"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/util/flowcontrol"

	"github.com/egressfleet/egressfleet/providers"
)

// The bounds of one call.
const (
	callTime      = 20 * time.Second // the retries that client-go makes included
	dialTime      = 5 * time.Second
	handshakeTime = 5 * time.Second
	idleTime      = 90 * time.Second
	// A connection on which nothing came for silentTime is asked, and given up when there
	// is no answer: a load balancer may have forgotten it.
	silentTime = 30 * time.Second
	pingTime   = 15 * time.Second
)

const userAgent = "egressfleet"

// connection is the seam: what gives a call its client. client-go's own fake clientset
// stands behind it as well as the real one.
type connection interface {
	// client returns the client of the credentials as they are now, and their sum.
	client(ctx context.Context) (api, [sha256.Size]byte, error)
	close()
}

// dialer keeps the client of the credentials that it has seen last. It dials nothing.
type dialer struct {
	access  access
	limiter flowcontrol.RateLimiter // of the provider: new credentials are no new allowance

	mu   sync.Mutex
	sum  [sha256.Size]byte
	last api
	idle func()
}

func (d *dialer) client(context.Context) (api, [sha256.Size]byte, error) {
	m, err := d.access.read()
	if err != nil {
		return nil, m.sum, err
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.last != nil && d.sum == m.sum {
		return d.last, d.sum, nil
	}
	client, letGo, err := newClient(m.rest, d.limiter)
	if err != nil {
		return nil, m.sum, permanent("the access to the API server cannot be used: %w", err)
	}
	if d.idle != nil {
		d.idle()
	}
	d.last, d.sum, d.idle = client, m.sum, letGo
	return client, m.sum, nil
}

func (d *dialer) close() {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.idle != nil {
		d.idle()
	}
	d.last, d.idle = nil, nil
}

// newClient builds a client on a transport of its own: client-go would keep one for each
// token that there ever was.
func newClient(cfg *rest.Config, limiter flowcontrol.RateLimiter) (api, func(), error) {
	tlsConfig, err := rest.TLSConfigFor(cfg)
	if err != nil {
		return nil, nil, err
	}
	proxy := cfg.Proxy
	if proxy == nil {
		proxy = noProxy // the default would ask the environment
	}
	// The defaults of client-go's own transport would come from the environment.
	base := &http.Transport{
		Proxy: proxy, TLSClientConfig: tlsConfig, TLSHandshakeTimeout: handshakeTime, IdleConnTimeout: idleTime,
		DialContext: (&net.Dialer{Timeout: dialTime}).DialContext, ForceAttemptHTTP2: true,
		HTTP2: &http.HTTP2Config{SendPingTimeout: silentTime, PingTimeout: pingTime},
	}
	cfg.UserAgent, cfg.RateLimiter = userAgent, limiter
	cfg.ContentType = runtime.ContentTypeJSON // as what people read in an audit log and a capture
	cfg.WarningHandlerWithContext = warnings{}
	cfg.WrapTransport = func(rt http.RoundTripper) http.RoundTripper { return traced(watched{rt}) }
	wrapped, err := rest.HTTPWrappersForConfig(cfg, base)
	if err != nil {
		return nil, nil, err
	}
	client, err := newWire(cfg, &http.Client{Transport: wrapped})
	if err != nil {
		return nil, nil, err
	}
	return client, base.CloseIdleConnections, nil
}

func noProxy(*http.Request) (*url.URL, error) { return nil, nil } //nolint:nilnil // net/http's way to say none

func fixedProxy(u *url.URL) func(*http.Request) (*url.URL, error) { return http.ProxyURL(u) }

// warnings puts what the API server warns of into the log of the call; client-go would
// write it to the standard error.
type warnings struct{}

// HandleWarningHeaderWithContext logs a warning of the API server.
func (warnings) HandleWarningHeaderWithContext(ctx context.Context, code int, _, text string) {
	if code == http.StatusOK || text == "" {
		return
	}
	providers.Logger(ctx).LogAttrs(ctx, providers.LevelDetail, "kubernetes API server warns", slog.String("warning", text))
}

// call makes one call with a bound of its own. A token that has expired is read again
// at every call; one that was swapped while the call was under way costs a second try.
func call[T any](
	ctx context.Context, p *Provider, do func(context.Context, api) (T, error),
) (answer T, err error) {
	ctx, cancel := context.WithTimeout(ctx, p.callTime)
	defer cancel()
	ctx, said := withVerdict(withClientLines(ctx))
	client, sum, err := p.connection.client(ctx)
	if err != nil {
		return answer, err
	}
	answer, err = do(ctx, client)
	if apierrors.IsUnauthorized(err) {
		if again, now, readErr := p.connection.client(ctx); readErr == nil && now != sum {
			client = again
			answer, err = do(ctx, client)
		}
	}
	if lacksRight(err) {
		if starts := ready(ctx, client); starts != nil {
			return answer, transient("the API server is not ready (%v), and may not know the roles yet: %w", starts, err)
		}
		answer, err = do(ctx, client)
	}
	if err != nil {
		return answer, said.explain(err)
	}
	return answer, nil
}

// hinted adds to an error what to do about it, where its own words do not say.
func hinted(err error) error {
	if hint := untrusted(err); hint != "" {
		return fmt.Errorf("%w (%s)", err, hint)
	}
	return err
}
