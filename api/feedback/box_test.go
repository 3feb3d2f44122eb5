package feedback_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"github.com/stretchr/testify/require"

	"github.com/egressfleet/egressfleet/api/feedback"
	v1 "github.com/egressfleet/egressfleet/api/v1"
	"github.com/egressfleet/egressfleet/starter/fleet"
)

var _ feedback.Fleet = (*fleet.Client)(nil)

var birth = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

// desk is a box whose time stands still until it is moved, and the fleet behind it.
type desk struct {
	*feedback.Box
	registry *prometheus.Registry
	ticks    chan time.Time
	log      bytes.Buffer

	mu      sync.Mutex
	now     time.Time
	fail    error
	bans    fleet.Bans
	known   []int64 // revisions that were asked with
	batches []fleet.FeedbackBatch
}

func newDesk() *desk {
	d := &desk{now: birth, registry: prometheus.NewRegistry(), ticks: make(chan time.Time)}
	d.Box = feedback.New(d, feedback.Options{
		Logger: slog.New(slog.NewTextHandler(&d.log, nil)), Clock: d, Metrics: feedback.NewMetrics(d.registry),
	})
	return d
}

func (d *desk) Now() time.Time {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.now
}

func (d *desk) Ticker(time.Duration) (<-chan time.Time, func()) { return d.ticks, func() {} }

func (d *desk) set(change func()) {
	d.mu.Lock()
	defer d.mu.Unlock()
	change()
}

func (d *desk) SendFeedback(_ context.Context, b fleet.FeedbackBatch) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.fail == nil {
		d.batches = append(d.batches, b)
	}
	return d.fail
}

func (d *desk) Bans(_ context.Context, known int64) (fleet.Bans, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.known = append(d.known, known)
	return d.bans, d.fail
}

// works runs the box, and returns what ends it.
func (d *desk) works(t *testing.T, hurry bool) (stop func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() { defer close(done); d.Run(ctx, func() bool { return hurry }) }()
	stop = func() { cancel(); <-done }
	t.Cleanup(stop)
	return stop
}

// tick moves the time, and returns when what was due then is done, apart from a load.
func (d *desk) tick(by time.Duration) {
	d.set(func() { d.now = d.now.Add(by) })
	d.ticks <- birth
	d.ticks <- birth // which is taken when the beat before it is over
}

func (d *desk) sent() (n int) {
	d.set(func() { n = len(d.batches) })
	return n
}

func of(domain, ip string, kind v1.ReportKind) fleet.FeedbackReport {
	return fleet.FeedbackReport{
		Provider: "gcp", Namespace: "default", Name: "a", UID: "u", EgressIP: ip, Domain: domain, Kind: kind, At: birth,
	}
}

func TestBatchesAreASecondApartAndBounded(t *testing.T) {
	t.Parallel()
	d := newDesk()
	for i := range fleet.MaxFeedback + 3 {
		d.Take(of(fmt.Sprintf("site-%d.example", i), "203.0.113.7", v1.ReportSlow))
	}
	d.works(t, false)
	d.tick(0)
	d.tick(time.Millisecond)
	d.tick(time.Second - time.Millisecond - 1)
	require.Equal(t, 1, d.sent())
	d.tick(1)
	require.Equal(t, 2, d.sent())
	d.set(func() {
		require.Len(t, d.batches[0].Reports, fleet.MaxFeedback)
		require.Len(t, d.batches[1].Reports, 3)
	})
	d.tick(time.Minute)
	require.Equal(t, 2, d.sent(), "nothing waits")
}

func TestWhatCouldNotBeSentIsSentLaterAndWhatIsLeftAtTheEnd(t *testing.T) {
	t.Parallel()
	d := newDesk()
	d.fail = errors.New("away")
	d.Take(of("example.com", "203.0.113.7", v1.ReportBanned))
	stop := d.works(t, false)
	for range 3 {
		d.tick(time.Second)
	}
	d.set(func() { d.fail = nil })
	require.Zero(t, d.sent())
	d.tick(time.Second)
	require.Equal(t, 1, d.sent())
	d.Take(of("last.example", "203.0.113.7", v1.ReportBanned))
	stop()
	require.Len(t, d.batches, 2)
	require.Equal(t, "last.example", d.batches[1].Reports[0].Domain)
	require.Equal(t, 1, strings.Count(d.log.String(), "reports wait"), "one line for an outage")
	require.NotContains(t, d.log.String(), "example.com")
}

func TestTheSameAgainWhileItWaitsIsOneReport(t *testing.T) {
	t.Parallel()
	d := newDesk()
	for range 3 {
		require.Equal(t, birth.Add(time.Hour), d.Take(of("example.com", "203.0.113.7", v1.ReportBanned)))
		require.Zero(t, d.Take(of("example.com", "203.0.113.7", v1.ReportSlow)))
	}
	d.works(t, false)()
	require.Len(t, d.batches, 1)
	require.Len(t, d.batches[0].Reports, 2)
	require.Equal(t, feedback.DefaultPolicy(), d.batches[0].Policy)
}

func TestTheBansOfTheFleetAndThoseOfThisProcessCountTogether(t *testing.T) {
	t.Parallel()
	d := newDesk()
	require.False(t, d.Known())
	d.fail = errors.New("no worker")
	d.Load(t.Context())
	require.False(t, d.Known(), "that nobody answers is not that there are none")
	d.fail = nil
	d.bans = fleet.Bans{Revision: 7, Bans: map[string]map[string]int64{
		"example.com": {"203.0.113.1": birth.Add(time.Minute).Unix(), "203.0.113.2": birth.Unix()},
	}}
	d.Take(of("example.com", "203.0.113.3", v1.ReportCaptcha))
	d.Load(t.Context())
	require.True(t, d.Known())
	banned := d.For("www.example.com")
	for ip, want := range map[string]bool{
		"203.0.113.1": true, "203.0.113.2": false, "203.0.113.3": true, "203.0.113.4": false, "": false,
	} {
		require.Equal(t, want, banned(ip), ip)
	}
	require.False(t, d.For("com")("203.0.113.1"), "a ban covers what is below, not what is above")
	require.False(t, d.For("example.org")("203.0.113.1"))
	d.bans.Bans = nil // as the fleet answers who knows the revision
	d.Load(t.Context())
	require.Equal(t, []int64{0, 0, 7}, d.known)
	require.True(t, banned("203.0.113.1"))
	d.set(func() { d.now = d.now.Add(time.Minute) })
	require.False(t, banned("203.0.113.1"))
	require.True(t, banned("203.0.113.3"))
}

func TestAnAddressHasNothingAboveIt(t *testing.T) {
	t.Parallel()
	d := newDesk()
	d.Take(of("113.7", "203.0.113.1", v1.ReportBanned))
	require.False(t, d.For("203.0.113.7")("203.0.113.1"))
	require.True(t, d.For("x.113.7")("203.0.113.1"))
}

func TestBansAreLoadedEveryFiveSecondsAndEverySecondWhileSomebodyWaits(t *testing.T) {
	t.Parallel()
	for hurry, want := range map[bool]int{false: 3, true: 11} {
		d := newDesk()
		stop := d.works(t, hurry)
		d.tick(0)
		loads := func() (n int) { d.set(func() { n = len(d.known) }); return n }
		for i := range 10 {
			d.tick(time.Second)
			least := 1 + (i+1)/5
			if hurry {
				least = i + 2
			}
			require.Eventually(t, func() bool { d.tick(0); return loads() >= least }, time.Minute, time.Millisecond)
		}
		stop()
		require.Equal(t, want, loads())
	}
}

func TestTooMuchIsBoundedAndCounted(t *testing.T) {
	t.Parallel()
	d := newDesk()
	for i := range 25_000 {
		r := of(fmt.Sprintf("site-%d.example", i), "203.0.113.7", v1.ReportBanned)
		r.At = birth.Add(time.Duration(i) * time.Second)
		d.Take(r)
	}
	d.bans.Dropped = 3
	d.Load(t.Context())
	require.True(t, d.For("site-24999.example")("203.0.113.7"), "the newest stay")
	require.False(t, d.For("site-0.example")("203.0.113.7"))
	bans, err := gauge(d, "egressfleet_feedback_bans")
	require.NoError(t, err)
	require.LessOrEqual(t, bans, 20_000.0)
	require.GreaterOrEqual(t, bans, 18_000.0)
	require.NoError(t, testutil.GatherAndCompare(d.registry, strings.NewReader(`
# HELP egressfleet_feedback_bans_dropped Bans that were forgotten early because there are too many.
# TYPE egressfleet_feedback_bans_dropped gauge
egressfleet_feedback_bans_dropped 3
# HELP egressfleet_feedback_lost_total Reports that were given up because too many waited while Temporal was away.
# TYPE egressfleet_feedback_lost_total counter
egressfleet_feedback_lost_total 20000
# HELP egressfleet_feedback_reports_total Reports of clients that were counted, by kind.
# TYPE egressfleet_feedback_reports_total counter
egressfleet_feedback_reports_total{kind="banned"} 25000
egressfleet_feedback_reports_total{kind="captcha"} 0
egressfleet_feedback_reports_total{kind="slow"} 0
egressfleet_feedback_reports_total{kind="timeout"} 0
# HELP egressfleet_feedback_waiting Reports that are not left with the fleet yet.
# TYPE egressfleet_feedback_waiting gauge
egressfleet_feedback_waiting 5000
`), "egressfleet_feedback_bans_dropped", "egressfleet_feedback_lost_total", "egressfleet_feedback_reports_total",
		"egressfleet_feedback_waiting"))
}

func TestBansThatAllEndAtOnceAreBoundedToo(t *testing.T) {
	t.Parallel()
	d := newDesk()
	for i := range 25_000 {
		d.Take(of(fmt.Sprintf("site-%d.example", i), "203.0.113.7", v1.ReportBanned))
	}
	bans, err := gauge(d, "egressfleet_feedback_bans")
	require.NoError(t, err)
	require.LessOrEqual(t, bans, 20_000.0)
	require.GreaterOrEqual(t, bans, 18_000.0)
}

func gauge(d *desk, name string) (float64, error) {
	families, err := d.registry.Gather()
	for _, f := range families {
		if f.GetName() == name {
			return f.GetMetric()[0].GetGauge().GetValue(), err
		}
	}
	return 0, errors.Join(err, errors.New("no "+name))
}
