package realserver

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/worker"

	"github.com/egressfleet/egressfleet/activities"
	"github.com/egressfleet/egressfleet/activities/probe"
	v1 "github.com/egressfleet/egressfleet/api/v1"
	"github.com/egressfleet/egressfleet/starter/fleet"
	"github.com/egressfleet/egressfleet/worker/hands"
	"github.com/egressfleet/egressfleet/workflows/openproxy"
	"github.com/egressfleet/egressfleet/workflows/proxy"
)

func (a asProbed) ReportOpenProxy(ctx context.Context, p v1.Proxy, o probe.Openness) error {
	return hands.Probed{Client: a.l.Client}.ReportOpenProxy(ctx, p, o)
}

// newOpenLab is a lab whose workers have its proxy asked by a second prober, once there
// is one. The proxy refuses, or lets everybody in.
func newOpenLab(t *testing.T) *healthLab {
	t.Helper()
	h := newHealthLab(t)
	h.denies.Store(true)
	h.hands = append(h.hands, &activities.OpenProxies{
		Fleet: asProbed{h.lab}, Names: func() []string { return []string{"fake"} },
		TargetOf: func(string) probe.Target { return h.target },
	})
	return h
}

// outside starts a second prober, and returns what stops it.
func (h *healthLab) outside() (stop func()) {
	h.t.Helper()
	w := worker.New(h.temporal, openproxy.QueueOf(h.queue), worker.Options{DisableWorkflowWorker: true})
	w.RegisterActivity(&activities.Outside{
		Fleet: asProbed{h.lab}, Prober: &probe.Prober{},
		Echo: func(t probe.Target) probe.Target { t.Roots = h.target.Roots; return t },
	})
	require.NoError(h.t, w.Start())
	return w.Stop
}

// check runs one check, which a second prober has a second to begin.
func (h *healthLab) check() (r openproxy.Result, err error) {
	h.t.Helper()
	return h.checkWithin(time.Second)
}

func (h *healthLab) checkWithin(patience time.Duration) (r openproxy.Result, err error) {
	s := fleet.OpenProxyCheck()
	s.ID = "open-" + h.name
	err = h.RunSweep(h.t.Context(), s, openproxy.Input{Patience: patience}, &r)
	require.Empty(h.t, r.Faults)
	return r, err
}

// checked is a check that a second prober has carried out.
func (h *healthLab) checked() openproxy.Result {
	h.t.Helper()
	r, err := h.checkWithin(soon)
	require.NoError(h.t, err)
	require.Equal(h.t, 1, r.Asked)
	return r
}

// open waits until the proxy shows a reason of the condition OpenProxy.
func (h *healthLab) open(status v1.ConditionStatus, reason string) v1.Condition {
	h.t.Helper()
	var c v1.Condition
	require.Eventually(h.t, func() bool {
		c, _ = h.get().Status.Condition(v1.ConditionOpenProxy)
		return c.Status == status && c.Reason == reason
	}, soon, tick, "%+v", c)
	return c
}

// Report 47: scrapoxy/scrapoxy#21.
func TestReport47AStrangerWhoIsLetInIsTold(t *testing.T) {
	h := newOpenLab(t)
	h.up(v1.HealthCheck{})
	h.open(v1.ConditionUnknown, v1.ReasonNoSecondProber)
	defer h.outside()()
	require.Len(t, h.checked().Changed, 1)
	h.open(v1.ConditionFalse, v1.ReasonClosed)
	before, _ := h.events("")
	for range 3 {
		require.Empty(t, h.checked().Changed)
	}
	after, _ := h.events("")
	require.Equal(t, before, after, "nothing new is nothing told")

	h.denies.Store(false)
	require.Equal(t, []string{"default/" + h.name}, h.checked().Open)
	c := h.open(v1.ConditionTrue, v1.ReasonOpenProxy)
	require.Contains(t, c.Message, h.target.Address())
	_, usable := v1.EndpointOf(h.get())
	require.True(t, usable, "its clients may use it on")

	h.denies.Store(true)
	r := h.checked()
	require.Empty(t, r.Open)
	require.Equal(t, activities.Openings{Closed: 1}, r.Counts["fake"])
	h.open(v1.ConditionFalse, v1.ReasonClosed)
	h.update(proxy.UpdateReplace, proxy.Why{Reason: "test"})
	h.open(v1.ConditionUnknown, v1.ReasonNoSecondProber) // of another instance nothing is known
	h.running()
	h.deleted()
}

func TestASecondProberThatIsAwayLeavesNoRunStuck(t *testing.T) {
	h := newOpenLab(t)
	h.up(v1.HealthCheck{})
	r, err := h.check()
	failed, ok := errors.AsType[*temporal.ApplicationError](err)
	require.True(t, ok, "%v", err)
	require.Equal(t, openproxy.ErrNoSecondProber, failed.Type())
	require.True(t, r.NoSecondProber)
	require.Empty(t, r.Changed, "it shows that already")

	stop := h.outside()
	h.checked()
	h.open(v1.ConditionFalse, v1.ReasonClosed)
	stop()
	r, err = h.check()
	require.ErrorAs(t, err, &failed)
	require.Len(t, r.Changed, 1)
	h.open(v1.ConditionUnknown, v1.ReasonNoSecondProber)

	h.denies.Store(false)
	stop = h.outside()
	h.checked()
	h.open(v1.ConditionTrue, v1.ReasonOpenProxy)
	stop()
	r, err = h.check()
	require.ErrorAs(t, err, &failed)
	require.Empty(t, r.Changed)
	require.Equal(t, []string{"default/" + h.name}, r.Open, "not to know is no all-clear")
	h.open(v1.ConditionTrue, v1.ReasonOpenProxy)
	h.deleted()
}

func TestWithoutATargetNoStrangerAsks(t *testing.T) {
	h := newOpenLab(t)
	h.target = probe.Target{}
	h.up(v1.HealthCheck{})
	defer h.outside()()
	h.checked()
	h.open(v1.ConditionUnknown, v1.ReasonNoTarget)
	require.Empty(t, h.checked().Changed, "it is told once")
	h.deleted()
}
