package gcp

import (
	"log/slog"
	"net/http"
	"strings"
	"time"

	"github.com/egressfleet/egressfleet/providers"
)

// silent keeps Google's client from logging by itself: a variable of the environment
// would let it write requests, with user-data in them, to the standard error.
func silent() *slog.Logger { return slog.New(slog.DiscardHandler) }

// wired writes a line for each request and each answer, the finest tier. Headers hold the
// token, bodies user-data, and the endpoint before the path may hold what the operator
// keeps to himself: of those it tells sizes, or nothing.
func wired(next http.RoundTripper) http.RoundTripper {
	return roundTrip(func(r *http.Request) (*http.Response, error) {
		ctx, begun := r.Context(), time.Now()
		log := providers.Logger(ctx).With(slog.String("method", r.Method), slog.String("resource", resourceOf(r)))
		log.LogAttrs(ctx, providers.LevelWire, "gcp sends",
			slog.String("query", r.URL.RawQuery), slog.Int64("bytes", r.ContentLength))
		response, err := next.RoundTrip(r)
		took := slog.Int64("milliseconds", time.Since(begun).Milliseconds())
		if err != nil {
			log.LogAttrs(ctx, providers.LevelWire, "gcp receives nothing", took, slog.String("error", err.Error()))
			return nil, err
		}
		log.LogAttrs(ctx, providers.LevelWire, "gcp receives", took, slog.Int("status", response.StatusCode),
			slog.Int64("bytes", response.ContentLength), slog.String("type", response.Header.Get("Content-Type")))
		return response, nil
	})
}

// resourceOf is what a request is about, without the endpoint's own path.
func resourceOf(r *http.Request) string {
	if n := strings.LastIndex(r.URL.Path, "/projects/"); n >= 0 {
		return r.URL.Path[n+1:]
	}
	return ""
}
