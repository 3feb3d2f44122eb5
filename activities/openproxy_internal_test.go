package activities

import (
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"github.com/stretchr/testify/require"
	sdktest "go.temporal.io/sdk/testsuite"
	"go.temporal.io/sdk/worker"

	"github.com/egressfleet/egressfleet/activities/probe"
	v1 "github.com/egressfleet/egressfleet/api/v1"
	"github.com/egressfleet/egressfleet/providers"
)

func TestWhatAProxyIsCalledAfterALookFromOutside(t *testing.T) {
	t.Parallel()
	const (
		yes, no, unknown = v1.ConditionTrue, v1.ConditionFalse, v1.ConditionUnknown
		nobody           = v1.ReasonNoSecondProber
	)
	for name, c := range map[string]struct {
		was, found             v1.ConditionStatus
		wasReason, foundReason string
		status                 v1.ConditionStatus
		news                   bool
	}{
		"the first look finds it closed":      {unknown, no, nobody, v1.ReasonClosed, no, true},
		"the first look finds it open":        {unknown, yes, nobody, v1.ReasonOpenProxy, yes, true},
		"closed, still":                       {no, no, v1.ReasonClosed, v1.ReasonClosed, no, false},
		"open, still":                         {yes, yes, v1.ReasonOpenProxy, v1.ReasonOpenProxy, yes, false},
		"it was opened":                       {no, yes, v1.ReasonClosed, v1.ReasonOpenProxy, yes, true},
		"it was closed":                       {yes, no, v1.ReasonOpenProxy, v1.ReasonClosed, no, true},
		"nobody to look, still":               {unknown, unknown, nobody, nobody, unknown, false},
		"no target, instead of nobody":        {unknown, unknown, nobody, v1.ReasonNoTarget, unknown, true},
		"closed, and nobody looks any more":   {no, unknown, v1.ReasonClosed, nobody, unknown, true},
		"closed, and the look proves nothing": {no, unknown, v1.ReasonClosed, v1.ReasonInconclusive, unknown, true},
		"open, and nobody looks any more":     {yes, unknown, v1.ReasonOpenProxy, nobody, yes, false},
		"open, and the look proves nothing":   {yes, unknown, v1.ReasonOpenProxy, v1.ReasonInconclusive, yes, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			status, news := openFrom(v1.Condition{Status: c.was, Reason: c.wasReason},
				probe.Openness{Status: c.found, Reason: c.foundReason})
			require.Equal(t, c.status, status)
			require.Equal(t, c.news, news)
		})
	}
}

func TestWhatAStrangerAsksFor(t *testing.T) {
	t.Parallel()
	roots := x509.NewCertPool()
	here := OpenProxies{
		Fleet: &exposed{}, Names: func() []string { return []string{"laptop", "gcp"} },
		TargetOf: func(provider string) probe.Target {
			if provider == "laptop" {
				return probe.Target{Host: "127.0.0.1", Port: 8443, Roots: roots}
			}
			return probe.Target{Host: "target.example", Port: 443}
		},
	}
	plan, err := here.PlanOpenProxies(t.Context())
	require.NoError(t, err)
	require.Equal(t, map[string]Aim{
		"": {Address: "target.example:443"}, "gcp": {Address: "target.example:443"},
		"laptop": {Address: "127.0.0.1:8443", Echo: true},
	}, plan.Aims)

	outside := Outside{Echo: func(t probe.Target) probe.Target { t.Roots = roots; return t }}
	of := func(provider, own string) probe.Target {
		p := v1.Proxy{Spec: v1.ProxySpec{Provider: provider, HealthCheck: v1.HealthCheck{Target: own}}}
		return outside.target(OutsideBatch{Aims: plan.Aims}, p)
	}
	require.Equal(t, probe.Target{Host: "127.0.0.1", Port: 8443, Roots: roots}, of("laptop", ""))
	require.Equal(t, probe.Target{Host: "target.example", Port: 443}, of("gcp", ""))
	require.Equal(t, probe.Target{Host: "target.example", Port: 443}, of("gone", ""))
	require.Equal(t, probe.Target{Host: "own.example", Port: 8080}, of("laptop", "own.example:8080"))
	require.True(t, of("gcp", "own example").IsZero(), "what cannot be read is asked for by nobody")
	require.True(t, outside.target(OutsideBatch{}, v1.Proxy{}).IsZero())
	require.Equal(t, Aim{}, aimOf(probe.Target{}))
}

// exposed is a fleet of proxies that notes what they are told.
type exposed struct {
	proxies []v1.Proxy
	told    []string
	fault   error
}

func (f *exposed) Pages(context.Context, int) ([][]byte, error) { return [][]byte{nil}, f.fault }

func (f *exposed) Page(context.Context, int, []byte) ([]v1.Proxy, error) { return f.proxies, f.fault }

func (f *exposed) ReportOpenProxy(_ context.Context, p v1.Proxy, o probe.Openness) error {
	if p.Metadata.Name == "mute" {
		return errors.New("no answer")
	}
	f.told = append(f.told, p.Metadata.Name+" "+o.Reason)
	return nil
}

// answers serves one answer for every request, at an address that a proxy may have.
func answers(t *testing.T, text string) *net.TCPAddr {
	t.Helper()
	l, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	require.NoError(t, err)
	t.Cleanup(func() { _ = l.Close() })
	go func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			_, _ = conn.Read(make([]byte, 1<<10))
			_, _ = fmt.Fprint(conn, text)
			_ = conn.Close()
		}
	}()
	return l.Addr().(*net.TCPAddr)
}

func exposedAt(name string, at *net.TCPAddr, shown v1.Condition) v1.Proxy {
	p := v1.Proxy{Metadata: v1.Metadata{Namespace: "default", Name: name}}
	p.Spec, p.Status.IP = v1.ProxySpec{Provider: "p", Port: at.Port}, at.IP.String()
	if shown.Type != "" {
		p.Status.Conditions = []v1.Condition{shown}
	}
	return p
}

func TestOnlyNewsIsToldAndAnOpenProxyIsLoggedOnce(t *testing.T) {
	t.Parallel()
	open, closed := answers(t, "HTTP/1.1 200 OK\r\n\r\n"), answers(t, "HTTP/1.1 403 Forbidden\r\n\r\n")
	alarm := v1.Condition{Type: v1.ConditionOpenProxy, Status: v1.ConditionTrue, Reason: v1.ReasonOpenProxy}
	f := &exposed{proxies: []v1.Proxy{
		exposedAt("newly-open", open, v1.Condition{}),
		exposedAt("open-still", open, alarm),
		exposedAt("mute", open, v1.Condition{}),
		exposedAt("mended", closed, alarm),
		exposedAt("without-an-address", &net.TCPAddr{}, v1.Condition{}),
	}}
	f.proxies[4].Status.IP = ""
	var log strings.Builder
	var s sdktest.WorkflowTestSuite
	env := s.NewTestActivityEnvironment()
	env.SetWorkerOptions(worker.Options{BackgroundActivityContext: providers.WithLogger(
		t.Context(), slog.New(slog.NewTextHandler(&log, nil)))})
	env.RegisterActivity(&Outside{Fleet: f, Prober: &probe.Prober{}})
	v, err := env.ExecuteActivity("AskAsStranger", OutsideBatch{Aims: map[string]Aim{"": {Address: "target.invalid"}}})
	require.NoError(t, err)
	var r OpenProxyReport
	require.NoError(t, v.Get(&r))
	require.Equal(t, []string{"newly-open OpenProxy", "mended Closed"}, f.told)
	require.Equal(t, 1, r.Untold)
	require.Equal(t, 4, r.Asked)
	require.Equal(t, map[string]Openings{"p": {Open: 3, Closed: 1}}, r.Counts)
	require.Equal(t, []string{"default/newly-open", "default/open-still", "default/mute"}, r.Open)
	require.Len(t, r.Changed, 2)
	require.Equal(t, 1, strings.Count(log.String(),
		"level=WARN msg=\"open proxy: it lets strangers in\" proxy=default/newly-open"))
	require.NotContains(t, log.String(), "open-still")

	f.fault = errors.New("Visibility is away")
	_, err = env.ExecuteActivity("AskAsStranger", OutsideBatch{})
	require.ErrorContains(t, err, "listing the running proxies: Visibility is away")
}

func TestWithoutASecondProberOnlyTheAlarmStands(t *testing.T) {
	t.Parallel()
	shown := func(status v1.ConditionStatus, reason string) v1.Condition {
		return v1.Condition{Type: v1.ConditionOpenProxy, Status: status, Reason: reason}
	}
	at := &net.TCPAddr{IP: net.IPv4(192, 0, 2, 1), Port: 1}
	f := &exposed{proxies: []v1.Proxy{
		exposedAt("new", at, v1.Condition{}),
		exposedAt("closed", at, shown(v1.ConditionFalse, v1.ReasonClosed)),
		exposedAt("open", at, shown(v1.ConditionTrue, v1.ReasonOpenProxy)),
	}}
	r, err := (&OpenProxies{Fleet: f}).TellNoSecondProber(t.Context(), nil)
	require.NoError(t, err)
	require.Equal(t, []string{"closed NoSecondProber"}, f.told)
	require.Equal(t, map[string]Openings{"p": {Open: 1, Unknown: 2}}, r.Counts)
	f.fault = errors.New("away")
	_, err = (&OpenProxies{Fleet: f}).TellNoSecondProber(t.Context(), nil)
	require.ErrorContains(t, err, "away")
	_, err = (&OpenProxies{Fleet: f}).PlanOpenProxies(t.Context())
	require.ErrorContains(t, err, "away")
}

func TestTheFigureOfOpenProxiesIsTakenBackByAWholeCheckOnly(t *testing.T) {
	t.Parallel()
	r := prometheus.NewRegistry()
	o := OpenProxies{Metrics: NewOpenProxyMetrics(r)}
	figures := func(counts map[string]Openings, whole bool) string {
		require.NoError(t, o.NoteOpenProxies(t.Context(), OpenProxyNote{Counts: counts, Whole: whole}))
		var b strings.Builder
		families, err := r.Gather()
		require.NoError(t, err)
		for _, m := range families[0].GetMetric() {
			fmt.Fprintf(&b, "%s=%v ", m.GetLabel()[0].GetValue(), m.GetGauge().GetValue())
		}
		return b.String()
	}
	require.Equal(t, "a=2 b=0 ", figures(map[string]Openings{"a": {Open: 2}, "b": {Closed: 3}}, true))
	at := testutil.ToFloat64(o.Metrics.at)
	require.Positive(t, at)
	o.Metrics.at.Set(1)
	require.Equal(t, "a=2 b=1 ", figures(map[string]Openings{"a": {Unknown: 2}, "b": {Open: 1}}, false))
	require.InDelta(t, 1, testutil.ToFloat64(o.Metrics.at), 0, "it did not see everything")
	require.Equal(t, "b=0 ", figures(map[string]Openings{"b": {Closed: 3}}, true), "a has no proxies any more")
	require.NoError(t, (&OpenProxies{}).NoteOpenProxies(t.Context(), OpenProxyNote{Whole: true}), "nobody counts")
}
