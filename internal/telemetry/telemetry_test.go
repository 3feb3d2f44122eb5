package telemetry_test

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/prometheus/client_golang/prometheus/promhttp"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/otel/metric"
	"go.opentelemetry.io/otel/trace"
	"go.uber.org/goleak"

	"github.com/egressfleet/egressfleet/internal/telemetry"
)

func TestALoggerWritesItsLevelAndAbove(t *testing.T) {
	t.Parallel()
	var b bytes.Buffer
	log := telemetry.NewLogger(&b, slog.LevelDebug-4, false)
	log.Log(t.Context(), slog.LevelDebug-8, "wire")
	require.Empty(t, b.String())
	log.Log(t.Context(), slog.LevelDebug-4, "detail", slog.String("proxy", "default/a"))
	require.Contains(t, b.String(), "msg=detail proxy=default/a")
}

func TestALoggerWritesJSON(t *testing.T) {
	t.Parallel()
	var b bytes.Buffer
	telemetry.NewLogger(&b, slog.LevelInfo, true).Info("hello", slog.Int("port", 3128))
	var line map[string]any
	require.NoError(t, json.Unmarshal(b.Bytes(), &line))
	require.Equal(t, "hello", line["msg"])
	require.InDelta(t, 3128, line["port"], 0)
}

func TestALineNamesItsTraceOnce(t *testing.T) {
	t.Parallel()
	sc := trace.NewSpanContext(trace.SpanContextConfig{TraceID: trace.TraceID{1}, SpanID: trace.SpanID{2}})
	ctx := trace.ContextWithSpanContext(t.Context(), sc)
	var b bytes.Buffer
	log := telemetry.NewLogger(&b, slog.LevelInfo, false)
	log.InfoContext(ctx, "one")
	log.With(slog.String("traceID", sc.TraceID().String())).InfoContext(ctx, "other")
	log.InfoContext(t.Context(), "none")
	lines := strings.Split(b.String(), "\n")
	require.Contains(t, lines[0], "traceID=01000000000000000000000000000000 spanID=0200000000000000")
	require.Equal(t, 1, strings.Count(lines[1], "traceID="))
	require.NotContains(t, lines[2], "traceID")
}

func TestMetricsAreServedUntilTheContextEnds(t *testing.T) {
	defer goleak.VerifyNone(t)
	ctx, cancel := context.WithCancel(t.Context())
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	done := make(chan error, 1)
	var up atomic.Bool
	go func() {
		done <- telemetry.ServeMetrics(ctx, l, telemetry.NewRegistry(), up.Load, slog.New(slog.DiscardHandler))
	}()
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	require.Contains(t, get(t, client, "http://"+l.Addr().String()+"/metrics"), "egressfleet_build_info{")
	get(t, client, "http://"+l.Addr().String()+"/healthz")
	require.Equal(t, http.StatusServiceUnavailable, status(t, client, "http://"+l.Addr().String()+"/readyz"))
	up.Store(true)
	get(t, client, "http://"+l.Addr().String()+"/readyz")
	cancel()
	require.NoError(t, <-done)
	_, err = net.Dial("tcp", l.Addr().String())
	require.Error(t, err, "the port is free again")
}

func TestServingFailsOnAClosedListener(t *testing.T) {
	t.Parallel()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	require.NoError(t, l.Close())
	err = telemetry.ServeMetrics(t.Context(), l, telemetry.NewRegistry(), nil, slog.New(slog.DiscardHandler))
	require.ErrorIs(t, err, net.ErrClosed)
}

func status(t *testing.T, client *http.Client, url string) int {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, nil)
	require.NoError(t, err)
	resp, err := client.Do(req)
	require.NoError(t, err)
	require.NoError(t, resp.Body.Close())
	return resp.StatusCode
}

func get(t *testing.T, client *http.Client, url string) string {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, nil)
	require.NoError(t, err)
	resp, err := client.Do(req)
	require.NoError(t, err)
	defer func() { _ = resp.Body.Close() }()
	require.Equal(t, http.StatusOK, resp.StatusCode)
	body, err := io.ReadAll(resp.Body)
	require.NoError(t, err)
	return string(body)
}

func TestHistogramsOfOthersTellSecondsApart(t *testing.T) {
	t.Parallel()
	r := telemetry.NewRegistry()
	meter, err := telemetry.NewMeter(r)
	require.NoError(t, err)
	h, err := meter.Float64Histogram("latency", metric.WithUnit("s"))
	require.NoError(t, err)
	h.Record(t.Context(), .3)
	rec := httptest.NewRecorder()
	promhttp.HandlerFor(r, promhttp.HandlerOpts{}).ServeHTTP(rec, httptest.NewRequest(http.MethodGet, "/", nil))
	require.Contains(t, rec.Body.String(), "latency_seconds_bucket{le=\"0.25\"} 0\n")
	require.Contains(t, rec.Body.String(), "latency_seconds_bucket{le=\"0.5\"} 1\n")
}
