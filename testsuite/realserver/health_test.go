package realserver

import (
	"context"
	"log/slog"
	"net"
	"net/http"
	"sync/atomic"
	"testing"
	"time"

	"github.com/elazarl/goproxy"
	"github.com/stretchr/testify/require"

	"github.com/egressfleet/egressfleet/activities"
	"github.com/egressfleet/egressfleet/activities/probe"
	v1 "github.com/egressfleet/egressfleet/api/v1"
	"github.com/egressfleet/egressfleet/internal/echo"
	"github.com/egressfleet/egressfleet/providers"
	"github.com/egressfleet/egressfleet/starter/fleet"
	"github.com/egressfleet/egressfleet/worker/hands"
	"github.com/egressfleet/egressfleet/workflows/health"
)

// healthLab is a lab whose workers probe its one proxy, which really serves, for a
// target that really answers.
type healthLab struct {
	*lab
	port   int
	denies atomic.Bool // the proxy refuses every request
	target probe.Target
	down   func() // takes the target away
}

func newHealthLab(t *testing.T) *healthLab {
	t.Helper()
	h := &healthLab{lab: newLab(t, quick())}
	h.target, h.down = target(t)
	h.port = h.serves()
	h.hands = []any{&activities.Health{
		Instances: h.instances(), Fleet: asProbed{h.lab}, TargetOf: func(string) probe.Target { return h.target },
		Prober: &probe.Prober{
			Limits: probe.Limits{
				Dial: time.Second, Answer: time.Second, Handshake: time.Second, Request: time.Second, Total: 3 * time.Second,
			},
			Thresholds: probe.Thresholds{Fall: 2, Rise: 2, Pause: 10 * time.Millisecond},
		},
	}}
	return h
}

func target(t *testing.T) (probe.Target, func()) {
	t.Helper()
	e, err := echo.New()
	require.NoError(t, err)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	ctx, stop := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() { defer close(done); _ = e.Serve(ctx, l, slog.New(slog.DiscardHandler)) }()
	down := func() { stop(); <-done }
	t.Cleanup(down)
	return probe.Target{Host: "127.0.0.1", Port: l.Addr().(*net.TCPAddr).Port, Roots: e.Roots()}, down
}

// serves runs the proxy of the lab's first instance, which is at 127.0.0.1.
func (h *healthLab) serves() int {
	p := goproxy.NewProxyHttpServer()
	p.OnRequest().HandleConnectFunc(func(host string, ctx *goproxy.ProxyCtx) (*goproxy.ConnectAction, string) {
		if h.denies.Load() {
			ctx.Resp = goproxy.NewResponse(ctx.Req, goproxy.ContentTypeText, http.StatusForbidden, "denied")
			return &goproxy.ConnectAction{Action: goproxy.ConnectReject}, host
		}
		return goproxy.OkConnect, host
	})
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(h.t, err)
	server := &http.Server{Handler: p, ReadHeaderTimeout: time.Minute}
	go func() { _ = server.Serve(l) }()
	h.t.Cleanup(func() { _ = server.Close() })
	return l.Addr().(*net.TCPAddr).Port
}

// asProbed is the fleet as a round asks for it, only this lab's proxy.
type asProbed struct{ l *lab }

func (a asProbed) Pages(context.Context, int) ([][]byte, error) { return [][]byte{{}}, nil }

func (a asProbed) Page(context.Context, int, []byte) ([]v1.Proxy, error) {
	return []v1.Proxy{a.l.get()}, nil
}

func (a asProbed) Busy(context.Context, string) (int, error) { return 0, nil }

func (a asProbed) Report(ctx context.Context, p v1.Proxy, r activities.HealthReport) error {
	return hands.Probed{Client: a.l.Client}.Report(ctx, p, r)
}

func (a asProbed) Replace(ctx context.Context, f activities.Failing, reason, request string) (asked bool, err error) {
	return hands.Probed{Client: a.l.Client}.Replace(ctx, f, reason, request)
}

func (h *healthLab) up(s v1.HealthCheck) {
	h.t.Helper()
	h.work()
	served := spec
	served.Port, served.HealthCheck = h.port, s
	h.apply("apply", served)
	h.running()
}

// round probes once, and returns what it came to.
func (h *healthLab) round() (r health.Result) {
	h.t.Helper()
	s := fleet.HealthRound()
	s.ID = h.name
	require.NoError(h.t, h.RunSweep(h.t.Context(), s, health.Input{}, &r))
	require.Empty(h.t, r.Faults)
	return r
}

// shows waits until the proxy shows a reason.
func (h *healthLab) shows(reason string) v1.Condition {
	h.t.Helper()
	var c v1.Condition
	require.Eventually(h.t, func() bool {
		c, _ = h.get().Status.Condition(v1.ConditionHealthy)
		return c.Reason == reason
	}, soon, tick)
	return c
}

func TestAVerdictIsToldOnChangeOnly(t *testing.T) {
	h := newHealthLab(t)
	h.up(v1.HealthCheck{})
	require.Len(t, h.round().Changed, 1)
	h.shows(v1.ReasonHealthy)
	require.NotEmpty(t, h.get().Status.EgressIP)
	before, _ := h.events("")
	for range 3 {
		require.Empty(t, h.round().Changed)
	}
	after, _ := h.events("")
	require.Equal(t, before, after, "nothing new is nothing told")

	h.denies.Store(true)
	require.Len(t, h.round().Changed, 1)
	h.shows(v1.ReasonRefused)
	_, found := v1.EndpointOf(h.get())
	require.False(t, found, "discovery hands it out no more")
	h.denies.Store(false)
	h.round()
	h.shows(v1.ReasonHealthy)
	require.Equal(t, 1, h.backend.Calls(providers.OpCreate), "nobody asked for a replacement")
	h.deleted()
}

func TestReport37ATargetThatIsDownChangesNothing(t *testing.T) {
	h := newHealthLab(t)
	h.up(v1.HealthCheck{ReplaceAfter: "1ms"})
	h.round()
	h.shows(v1.ReasonHealthy)
	h.down()
	r := h.round()
	require.Equal(t, 1, r.Reasons[v1.ReasonInconclusive])
	require.Empty(t, r.Changed)
	require.Equal(t, 1, h.backend.Calls(providers.OpCreate))
	h.shows(v1.ReasonHealthy)
	h.deleted()
}

func TestWhatStaysUnhealthyIsReplacedWhereItsSpecAsksForThat(t *testing.T) {
	h := newHealthLab(t)
	h.up(v1.HealthCheck{ReplaceAfter: "1ms"})
	h.round()
	h.shows(v1.ReasonHealthy)
	h.denies.Store(true)
	require.Empty(t, h.round().Providers[0].Replaced, "it has only just begun to fail")
	h.shows(v1.ReasonRefused)
	require.Equal(t, []string{"default/" + h.name}, h.round().Providers[0].Replaced)
	require.Eventually(t, func() bool { return h.backend.Calls(providers.OpCreate) == 2 }, soon, tick)
	h.running()
	h.shows(v1.ReasonNotProbed)
	h.deleted()
}

func TestWithoutATargetNobodyIsAsked(t *testing.T) {
	h := newHealthLab(t)
	h.target = probe.Target{}
	h.up(v1.HealthCheck{})
	require.Equal(t, 1, h.round().Reasons[v1.ReasonNoTarget])
	c := h.shows(v1.ReasonNoTarget)
	require.Equal(t, v1.ConditionUnknown, c.Status)
	require.Empty(t, h.round().Changed, "it is told once")
	h.deleted()
}

func TestADisabledCheckProbesNothing(t *testing.T) {
	h := newHealthLab(t)
	h.up(v1.HealthCheck{Disabled: true})
	require.Zero(t, h.round().Probed)
	h.deleted()
}
