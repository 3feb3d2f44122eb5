package kubernetes

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"

	"go.opentelemetry.io/contrib/instrumentation/net/http/otelhttp"
	"go.opentelemetry.io/otel/trace"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/egressfleet/egressfleet/providers"
)

// traced opens a span for each request below the span of the call, and none without one.
func traced(rt http.RoundTripper) http.RoundTripper {
	return otelhttp.NewTransport(rt,
		otelhttp.WithFilter(func(r *http.Request) bool { return trace.SpanContextFromContext(r.Context()).IsValid() }),
		otelhttp.WithSpanNameFormatter(func(_ string, r *http.Request) string {
			return Type + "." + r.Method + " " + resourceOf(r.URL.Path)
		}),
	)
}

// resourceOf is the resource of a path, such as "pods": names would make every span one
// of its own.
func resourceOf(path string) string {
	parts := strings.Split(strings.Trim(path, "/"), "/")
	for i, part := range parts {
		if part == "namespaces" && i+2 < len(parts) {
			return parts[i+2]
		}
	}
	switch {
	case parts[0] == "api" && len(parts) > 2:
		return parts[2]
	case parts[0] == "apis" && len(parts) > 3:
		return parts[3]
	default:
		return parts[len(parts)-1]
	}
}

// watched logs each request, and keeps what the server said last of a call. Neither
// headers nor bodies of a request are logged: they hold the token, and a podTemplate.
type watched struct{ next http.RoundTripper }

// RoundTrip makes a request.
func (w watched) RoundTrip(r *http.Request) (*http.Response, error) {
	ctx, began := r.Context(), time.Now()
	log := providers.Logger(ctx)
	log.LogAttrs(ctx, providers.LevelWire, "kubernetes sends", slog.String("method", r.Method),
		slog.String("uri", r.URL.RequestURI()), slog.Int64("bytes", r.ContentLength))
	response, err := w.next.RoundTrip(r)
	verdictOf(ctx).keep(response)
	attrs := []slog.Attr{
		slog.String("method", r.Method), slog.String("path", r.URL.Path),
		slog.Int64("milliseconds", time.Since(began).Milliseconds()),
	}
	if err != nil {
		log.LogAttrs(ctx, providers.LevelDetail, "kubernetes request failed",
			append(attrs, slog.String("error", err.Error()))...)
		return nil, err
	}
	header := response.Header
	log.LogAttrs(ctx, providers.LevelDetail, "kubernetes request",
		append(attrs, slog.Int("status", response.StatusCode))...)
	log.LogAttrs(ctx, providers.LevelWire, "kubernetes receives", slog.Int("status", response.StatusCode),
		slog.Int64("bytes", response.ContentLength), slog.String("type", header.Get("Content-Type")),
		slog.String("auditID", header.Get("Audit-Id")), slog.String("retryAfter", header.Get("Retry-After")))
	return response, nil
}

// verdict is what the server said last within a call. client-go waits out a 429 with
// Retry-After by itself, and when time is up it says only that.
type verdict struct {
	mu    sync.Mutex
	busy  bool
	after time.Duration
}

type verdictKey struct{}

func withVerdict(ctx context.Context) (context.Context, *verdict) {
	v := new(verdict)
	return context.WithValue(ctx, verdictKey{}, v), v
}

func verdictOf(ctx context.Context) *verdict {
	if v, ok := ctx.Value(verdictKey{}).(*verdict); ok {
		return v
	}
	return new(verdict)
}

func (v *verdict) keep(r *http.Response) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.busy, v.after = false, 0
	if r == nil || r.StatusCode != http.StatusTooManyRequests {
		return
	}
	v.busy = true
	if seconds, err := strconv.Atoi(r.Header.Get("Retry-After")); err == nil {
		v.after = time.Duration(seconds) * time.Second
	}
}

// explain puts the server's last word in the place of "time is up".
func (v *verdict) explain(err error) error {
	v.mu.Lock()
	defer v.mu.Unlock()
	if _, told := errors.AsType[*apierrors.StatusError](err); v.busy && !told {
		return &throttled{after: v.after, err: err}
	}
	return err
}
