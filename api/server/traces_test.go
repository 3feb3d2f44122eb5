package server_test

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"

	"github.com/egressfleet/egressfleet/api/server"
)

func TestWhatChangesBeginsATraceAndWhatReadsJoinsOne(t *testing.T) {
	t.Parallel()
	const route = "/v1/namespaces/:namespace/proxies/:name"
	const theirs = "4bf92f3577b34da6a3ce929d0e0e4736"
	for name, c := range map[string]struct {
		method, path, parent, want string
	}{
		"a change":                  {http.MethodPost, "/v1/namespaces/a/proxies/b/hold", "", "POST " + route + "/hold"},
		"a change in a trace":       {http.MethodDelete, "/v1/namespaces/a/proxies/b", theirs, "DELETE " + route},
		"a read":                    {http.MethodGet, "/v1/discovery", "", ""},
		"a read in a trace":         {http.MethodGet, "/v1/discovery", theirs, "GET /v1/discovery"},
		"a path that leads nowhere": {http.MethodPut, "/s3cret", "", "PUT /…"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			spans := tracetest.NewSpanRecorder()
			s := server.New(&fakeFleet{}, server.Options{
				Traces: sdktrace.NewTracerProvider(sdktrace.WithSpanProcessor(spans)),
			})
			r := httptest.NewRequestWithContext(t.Context(), c.method, c.path+"?reason=s3cret", strings.NewReader("{}"))
			if c.parent != "" {
				r.Header.Set("Traceparent", "00-"+c.parent+"-00f067aa0ba902b7-01")
			}
			s.Handler().ServeHTTP(httptest.NewRecorder(), r)
			if c.want == "" {
				require.Empty(t, spans.Ended())
				return
			}
			span := spans.Ended()[0]
			require.Equal(t, c.want, span.Name())
			require.Equal(t, c.parent != "", span.SpanContext().TraceID().String() == theirs)
			for _, a := range span.Attributes() {
				require.NotContains(t, a.Value.String(), "s3cret")
			}
		})
	}
}
