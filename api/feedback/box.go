// Package feedback is what a process of the API knows of its clients' reports: it
// collects them, leaves them with the fleet once a second, and knows which site bans
// which egress IP. It imports api/v1 and starter/fleet. Start reading at Box.
package feedback

import (
	"context"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	v1 "github.com/egressfleet/egressfleet/api/v1"
	"github.com/egressfleet/egressfleet/starter/fleet"
)

// Fleet is what a box asks; starter/fleet has it. SendFeedback may be repeated. Bans
// leaves them out where their revision is the known one; no reports at all are no error.
type Fleet interface {
	SendFeedback(ctx context.Context, b fleet.FeedbackBatch) error
	Bans(ctx context.Context, known int64) (fleet.Bans, error)
}

// Clock is what a box knows of time.
type Clock interface {
	Now() time.Time
	Ticker(period time.Duration) (ticks <-chan time.Time, stop func())
}

const (
	// Beat is how often a box looks whether there is anything to do.
	Beat = 400 * time.Millisecond
	// sendEvery is between two batches: each is an event in a history.
	sendEvery = time.Second
	// loadEvery is between two looks at the bans; loadSoon, while somebody waits for news.
	loadEvery = 5 * time.Second
	loadSoon  = time.Second
	// within bounds a call to the fleet.
	within = 4 * time.Second
	// queued bounds the reports that wait, while Temporal is away.
	queuedMost = 5000
)

// DefaultPolicy is what reports lead to where nothing else is configured.
func DefaultPolicy() fleet.FeedbackPolicy {
	return fleet.FeedbackPolicy{
		BanFor: time.Hour, Window: 15 * time.Minute, Replace: 5, Hold: 5, HoldFor: 5 * time.Minute, Budget: 6, Floor: 80,
	}
}

// Options are what a box may be given.
type Options struct {
	Policy  fleet.FeedbackPolicy // the zero one is the default
	Logger  *slog.Logger         // required
	Clock   Clock                // required
	Metrics *Metrics             // may be nil
}

// Box collects reports. It is safe for concurrent use.
type Box struct {
	fleet   Fleet
	policy  fleet.FeedbackPolicy
	log     *slog.Logger
	clock   Clock
	metrics *Metrics
	bans    *bans

	revision atomic.Int64
	known    atomic.Bool // the bans were loaded once
	loading  atomic.Bool
	loads    sync.WaitGroup
	loaded   time.Time // when the last load began; of Run alone
	sent     time.Time // when the last batch went; of Run alone
	stuck    bool      // the last batch did not

	mu     sync.Mutex
	queue  []fleet.FeedbackReport
	queued map[key]bool
}

// key tells apart what counts as another report until it is sent.
type key struct {
	namespace, name, uid, ip, domain string
	kind                             v1.ReportKind
	madeAt                           int64
}

// New returns a box that asks nobody anything before Run.
func New(f Fleet, o Options) *Box {
	if o.Policy == (fleet.FeedbackPolicy{}) {
		o.Policy = DefaultPolicy()
	}
	b := &Box{
		fleet: f, policy: o.Policy, log: o.Logger, clock: o.Clock, metrics: o.Metrics, bans: newBans(),
		queued: map[key]bool{},
	}
	o.Metrics.follow(b)
	return b
}

// Take remembers a report, and returns until when its egress IP is left out for its
// domain; the zero time for a kind that speaks of the proxy. It is with the fleet a
// second later, unless this process is killed before.
func (b *Box) Take(r fleet.FeedbackReport) (until time.Time) {
	b.metrics.took(r.Kind)
	if r.Kind.Bans() {
		until = r.At.Add(b.policy.BanFor).UTC().Truncate(time.Second)
		b.bans.add(r.Domain, r.EgressIP, until.Unix())
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	k := keyOf(r)
	switch {
	case b.queued[k]:
	case len(b.queue) >= queuedMost:
		b.metrics.lost()
	default:
		b.queued[k] = true
		b.queue = append(b.queue, r)
	}
	return until
}

func keyOf(r fleet.FeedbackReport) key {
	return key{r.Namespace, r.Name, r.UID, r.EgressIP, r.Domain, r.Kind, r.MadeAt.UnixNano()}
}

// For returns which egress IPs a site bans, at the time of each call. The domain is as
// Domain returns it.
func (b *Box) For(domain string) (banned func(ip string) bool) {
	names := covering(domain)
	return func(ip string) bool { return b.bans.has(names, ip, b.clock.Now()) }
}

// Known reports whether the bans were loaded once. Until then, none are known, which is
// not that there are none.
func (b *Box) Known() bool { return b.known.Load() }

// Run sends and loads until ctx ends, and then sends what is left. hurry says that
// somebody waits for news.
func (b *Box) Run(ctx context.Context, hurry func() bool) {
	ticks, stop := b.clock.Ticker(Beat)
	defer stop()
	defer b.loads.Wait()
	for {
		b.beat(ctx, hurry())
		select {
		case <-ctx.Done():
			b.empty(context.WithoutCancel(ctx))
			return
		case <-ticks:
		}
	}
}

func (b *Box) beat(ctx context.Context, hurry bool) {
	now, every := b.clock.Now(), loadEvery
	if hurry {
		every = loadSoon
	}
	if past(b.loaded, now, every) && !b.loading.Swap(true) {
		b.loaded = now
		b.loads.Go(func() { // where no worker answers it takes long, and batches need none
			defer b.loading.Store(false)
			b.Load(ctx)
		})
	}
	if past(b.sent, now, sendEvery) && b.waiting() > 0 {
		b.sent = now
		b.send(ctx)
	}
}

// past reports whether so much time has gone by; a clock may go back.
func past(since, now time.Time, d time.Duration) bool {
	gone := now.Sub(since)
	return gone < 0 || gone >= d
}

// Load asks the fleet for the bans. One that fails leaves what is known.
func (b *Box) Load(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, within)
	defer cancel()
	got, err := b.fleet.Bans(ctx, b.revision.Load())
	if err != nil {
		b.log.LogAttrs(ctx, slog.LevelDebug, "the bans were not loaded", slog.String("error", err.Error()))
		return
	}
	b.bans.merge(got.Bans, b.clock.Now())
	b.revision.Store(got.Revision)
	b.known.Store(true)
	b.metrics.dropped(got.Dropped)
}

// send leaves one batch with the fleet, and reports whether that worked. Who cannot be
// reached gets it again: a batch that was there already changes nothing.
func (b *Box) send(ctx context.Context) bool {
	ctx, cancel := context.WithTimeout(ctx, within)
	defer cancel()
	b.mu.Lock()
	batch := b.queue[:min(len(b.queue), fleet.MaxFeedback)]
	b.mu.Unlock()
	err := b.fleet.SendFeedback(ctx, fleet.FeedbackBatch{Policy: b.policy, Reports: batch})
	if err != nil {
		if !b.stuck { // one line for each outage
			b.log.LogAttrs(ctx, slog.LevelWarn, "reports wait: they could not be left with the fleet",
				slog.String("error", err.Error()), slog.Int("waiting", b.waiting()))
		}
		b.stuck = true
		return false
	}
	b.stuck = false
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, r := range batch {
		delete(b.queued, keyOf(r))
	}
	b.queue = append([]fleet.FeedbackReport(nil), b.queue[len(batch):]...)
	return true
}

// empty sends what is left at the end.
func (b *Box) empty(ctx context.Context) {
	for sent := true; sent && b.waiting() > 0; {
		sent = b.send(ctx)
	}
}

func (b *Box) waiting() int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return len(b.queue)
}
