package probe_test

import (
	"context"
	"fmt"
	"io"
	"net"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/egressfleet/egressfleet/activities/probe"
	v1 "github.com/egressfleet/egressfleet/api/v1"
)

// quick is the thresholds without their pause.
func quick() probe.Thresholds { return probe.Thresholds{Fall: 3, Rise: 2, Pause: time.Millisecond} }

// counted counts the dials to the target.
func counted(x target, direct string, dials *atomic.Int32) func(context.Context, string, string) (net.Conn, error) {
	dial := x.dialer(direct)
	return func(ctx context.Context, network, address string) (net.Conn, error) {
		if address == x.Address() {
			dials.Add(1)
		}
		return dial(ctx, network, address)
	}
}

// Report 34: claffin/cloudproxy#28. Proxies are checked one after the other, and those
// that hang hold up the rest.
func TestReport34AThousandProxiesOfWhichATenthHangEndInTime(t *testing.T) {
	t.Parallel()
	const all, within = 1000, time.Minute
	x := newTarget(t)
	good, bad := serve(t, tunnelTo(x.address)), serve(t, hang)
	jobs := make([]probe.Job, all)
	for i := range jobs {
		jobs[i] = probe.Job{Proxy: good, Target: x.Target, Before: probe.HealthHealthy}
		if i%10 == 3 {
			jobs[i].Proxy = bad
		}
	}
	limits := generous()
	limits.Answer = time.Second // a proxy that works keeps it in one of three tries, however busy the machine
	p := probe.Prober{Limits: limits, Thresholds: quick(), Dial: x.dialer(x.address)}
	ctx, cancel := context.WithTimeout(t.Context(), within)
	defer cancel()
	start := time.Now()
	var last atomic.Int32
	rulings := p.Batch(ctx, jobs, func(done, total int) {
		require.Equal(t, all, total)
		last.Store(int32(done))
	})
	require.Less(t, time.Since(start), within+2*time.Second)
	require.EqualValues(t, all, last.Load())
	for i, r := range rulings {
		want := v1.ReasonHealthy
		if i%10 == 3 {
			want = v1.ReasonUnreachable
		}
		require.Equal(t, want, r.Verdict.Reason, "%d: %s", i, r.Verdict.Text)
	}
}

func TestABatchThatRunsOutOfTimeEndsAndBlamesNobody(t *testing.T) {
	t.Parallel()
	x := newTarget(t)
	bad := serve(t, hang)
	jobs := make([]probe.Job, 200)
	for i := range jobs {
		jobs[i] = probe.Job{Proxy: bad, Target: x.Target, Before: probe.HealthHealthy}
	}
	const within = 200 * time.Millisecond
	p := probe.Prober{Limits: generous(), Concurrency: 20, Dial: x.dialer(x.address)} // each would wait 10 s, thrice
	ctx, cancel := context.WithTimeout(t.Context(), within)
	defer cancel()
	start := time.Now()
	rulings := p.Batch(ctx, jobs, nil)
	require.Less(t, time.Since(start), within+2*time.Second)
	for _, r := range rulings {
		require.Equal(t, v1.ReasonInconclusive, r.Verdict.Reason)
		require.Equal(t, probe.HealthHealthy, r.Health)
		require.False(t, r.Changed)
	}
}

func TestABatchRulesInTheOrderOfItsJobs(t *testing.T) {
	t.Parallel()
	x := newTarget(t)
	good, bad := serve(t, tunnelTo(x.address)), serve(t, answers(denied))
	var dials atomic.Int32
	p := probe.Prober{Limits: generous(), Thresholds: quick(), Dial: counted(x, x.address, &dials)}
	rulings := p.Batch(t.Context(), []probe.Job{
		{Proxy: good, Target: x.Target, Before: probe.HealthHealthy},
		{Proxy: bad, Target: x.Target, Before: probe.HealthHealthy},
		{Proxy: good, Target: x.Target, Before: probe.HealthUnhealthy},
		{Proxy: bad, Target: x.Target},
		{Proxy: bad, Before: probe.HealthHealthy},
	}, nil)
	var got []string
	for _, r := range rulings {
		got = append(got, fmt.Sprintf("%s %t %s %d", r.Health, r.Changed, r.Verdict.Reason, r.Tries))
	}
	require.Equal(t, []string{
		"healthy false Healthy 1", "unhealthy true Refused 3", "healthy true Healthy 2", "unhealthy true Refused 1",
		"healthy false NoTarget 1",
	}, got)
	require.EqualValues(t, 1, dials.Load(), "one control probe, for all of one target")
}

func TestEachDistinctTargetHasItsControlProbe(t *testing.T) {
	t.Parallel()
	x, y := newTarget(t), newTarget(t)
	y.Port = 8443 // of which the first proxy knows nothing, and which cannot be reached
	unreached := serve(t, answers(tried))
	p := probe.Prober{Limits: generous(), Thresholds: quick(), Dial: x.dialer(x.address)}
	p.Dial = func(ctx context.Context, network, address string) (net.Conn, error) {
		if address == y.Address() {
			return nil, io.EOF
		}
		return x.dialer(x.address)(ctx, network, address)
	}
	rulings := p.Batch(t.Context(), []probe.Job{
		{Proxy: unreached, Target: x.Target, Before: probe.HealthHealthy},
		{Proxy: unreached, Target: y.Target, Before: probe.HealthHealthy},
	}, nil)
	require.Equal(t, v1.ReasonNoEgress, rulings[0].Verdict.Reason)
	require.Equal(t, probe.HealthUnhealthy, rulings[0].Health)
	require.Equal(t, v1.ReasonInconclusive, rulings[1].Verdict.Reason)
	require.Equal(t, probe.HealthHealthy, rulings[1].Health)
}

func TestATargetThatGoesAwayDuringARoundBlamesNobody(t *testing.T) {
	t.Parallel()
	x := newTarget(t)
	var dials atomic.Int32
	p := probe.Prober{Limits: generous(), Thresholds: quick()}
	p.Dial = func(ctx context.Context, network, address string) (net.Conn, error) {
		if address == x.Address() && dials.Add(1) > 1 {
			return nil, io.EOF // it was there when the round began
		}
		return x.dialer(x.address)(ctx, network, address)
	}
	rulings := p.Batch(t.Context(), []probe.Job{
		{Proxy: serve(t, answers(tried)), Target: x.Target, Before: probe.HealthHealthy},
		{Proxy: serve(t, answers(denied)), Target: x.Target, Before: probe.HealthHealthy},
		{Proxy: serve(t, answers(tried)), Target: x.Target, Before: probe.HealthUnhealthy},
	}, nil)
	require.EqualValues(t, 2, dials.Load())
	require.Equal(t, v1.ReasonInconclusive, rulings[0].Verdict.Reason)
	require.Equal(t, probe.HealthHealthy, rulings[0].Health)
	require.False(t, rulings[0].Changed)
	require.Contains(t, rulings[0].Verdict.Text, "no longer at the end of the round")
	require.Equal(t, v1.ReasonRefused, rulings[1].Verdict.Reason, "that one says it itself")
	require.Equal(t, v1.ReasonInconclusive, rulings[2].Verdict.Reason, "nor is anybody replaced for it")
	require.Equal(t, probe.HealthUnhealthy, rulings[2].Health)
}

func TestAnUnhealthyProxyIsToldFromOneWhoseTargetIsDownToo(t *testing.T) {
	t.Parallel()
	x := newTarget(t)
	for name, direct := range map[string]string{"the target is there": x.address, "the target is down": ""} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := probe.Prober{Limits: generous(), Thresholds: quick(), Dial: x.dialer(direct)}
			r := p.Batch(t.Context(), []probe.Job{
				{Proxy: serve(t, answers(denied)), Target: x.Target, Before: probe.HealthUnhealthy},
			}, nil)[0]
			require.Equal(t, v1.ReasonRefused, r.Verdict.Reason, "it says it itself")
			require.Equal(t, direct == "", r.TargetDown)
		})
	}
}

func TestABatchHasNoMoreAttemptsUnderWayThanItMay(t *testing.T) {
	t.Parallel()
	x := newTarget(t)
	var mu sync.Mutex
	var now, most int
	proxy := serve(t, func(conn net.Conn) {
		mu.Lock()
		now++
		most = max(most, now)
		mu.Unlock()
		readRequest(conn)
		mu.Lock()
		now-- // before the answer lets the next one begin
		mu.Unlock()
		_, _ = io.WriteString(conn, denied)
	})
	jobs := make([]probe.Job, 60)
	for i := range jobs {
		jobs[i] = probe.Job{Proxy: proxy, Target: x.Target}
	}
	p := probe.Prober{Limits: generous(), Thresholds: quick(), Concurrency: 4, Dial: x.dialer(x.address)}
	p.Batch(t.Context(), jobs, nil)
	mu.Lock()
	defer mu.Unlock()
	require.LessOrEqual(t, most, 4)
	require.Positive(t, most)
}

func TestAnEmptyBatchIsNone(t *testing.T) {
	t.Parallel()
	require.Empty(t, new(probe.Prober).Batch(t.Context(), nil, nil))
}
