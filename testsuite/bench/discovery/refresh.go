package discovery

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"strconv"
	"sync"
	"time"

	"github.com/egressfleet/egressfleet/api/server"
	v1 "github.com/egressfleet/egressfleet/api/v1"
	"github.com/egressfleet/egressfleet/starter/fleet"
	"github.com/egressfleet/egressfleet/testsuite/bench/frame"
	"github.com/egressfleet/egressfleet/testsuite/bench/stage"
)

const (
	// period is between two refreshes, as the server counts it.
	period = 5 * time.Second
	// repeats are the refreshes of a run after which memory must be as before.
	repeats       = 2
	refreshWithin = time.Minute
	// changedOf are so many proxies of which one changes between two refreshes.
	changedOf = 100
	seconds   = 1.0
)

// Refresh lets the list be refreshed from a real Temporal server.
func Refresh() frame.Part {
	return frame.Part{
		Name: "discovery-refresh",
		About: "a refresh of the list from Temporal while one of a hundred proxies has changed since the last, " +
			"until it is there as JSON and as text",
		Sizes: []int{100, 1000, most}, Open: openRefresh,
		Figures: []frame.Figure{
			// Beside it the pages of a listing of everything, read and thrown away.
			{Name: "time", Unit: "s", Must: frame.AtMost(seconds), At: most},
			// The first of a process, and where a worker is older, beside the same.
			{Name: "full", Unit: "s"},
			{Name: "allocated", Unit: "B"},
			// Beside it what was held before the first refresh of the run.
			{Name: "held", Unit: "B", Must: frame.RatioAtMost(1.1), At: most},
		},
	}
}

// refreshing is a server whose time is in our hand.
type refreshing struct {
	stage    *stage.Stage
	changing *stage.Changing
	size     int
	clock    *clock
	server   *server.Server
	stop     func() error
	last     time.Time // when one was measured
}

func openRefresh(ctx context.Context, size int) (frame.Scene, error) {
	proxies := stage.Proxies(size)
	s, err := stage.Open(ctx, proxies[size/changedOf:])
	if err != nil {
		return frame.Scene{}, err
	}
	r := &refreshing{stage: s, size: size, clock: &clock{}, stop: func() error { return nil }}
	if err := r.begin(ctx, proxies[:size/changedOf]); err != nil {
		return frame.Scene{}, errors.Join(err, r.close())
	}
	return frame.Scene{Run: r.run, Close: r.close}, nil
}

// begin adds the proxies that change, waits until what was started is of before, and
// starts the server.
func (r *refreshing) begin(ctx context.Context, proxies []v1.Proxy) (err error) {
	if r.changing, err = r.stage.Change(ctx, proxies); err != nil {
		return err
	}
	if err := r.stage.Shown(ctx, r.size); err != nil {
		return err
	}
	if err := pause(ctx, stage.Settled); err != nil {
		return err
	}
	r.server = server.New(r.stage.Fleet, server.Options{Clock: r.clock}) //nolint:contextcheck // every request has its own
	l, err := new(net.ListenConfig).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	within, cancel := context.WithCancel(ctx)
	ended := make(chan error, 1)
	go func() { ended <- r.server.Run(within, l) }()
	r.stop = func() error { cancel(); return <-ended }
	return r.fresh(ctx)
}

func (r *refreshing) close() error {
	err := r.stop()
	if r.changing != nil {
		r.changing.Close()
	}
	return errors.Join(err, r.stage.Close())
}

func (r *refreshing) run(ctx context.Context, number int) (frame.Samples, error) {
	var took, full, allocated, held frame.Sample
	held.Baseline = stage.Held()
	err := frame.Turns(number, func() error {
		begun := time.Now()
		n, err := r.stage.List(ctx)
		took.Baseline = time.Since(begun).Seconds()
		if err == nil && n != r.size {
			err = fmt.Errorf("%d proxies are listed, and not %d", n, r.size)
		}
		return err
	}, func() error { return r.measure(ctx, &took, &allocated) })
	for range repeats {
		err = errors.Join(err, r.changing.Again(ctx), r.refresh(ctx))
	}
	held.Value = stage.Held()
	begun := time.Now()
	living, listed := fleet.New(r.stage.Temporal, stage.Installation).Follow(ctx)
	full = frame.Sample{Value: time.Since(begun).Seconds(), Baseline: took.Baseline}
	if err = errors.Join(err, listed); err == nil && len(living.Proxies) != r.size {
		err = fmt.Errorf("%d proxies are known, and not %d", len(living.Proxies), r.size)
	}
	return frame.Samples{"time": took, "full": full, "allocated": allocated, "held": held}, err
}

// measure lets one of a hundred change and refreshes, a period after the last time: so it
// looks for what was missed, too, as one of the server's own does.
func (r *refreshing) measure(ctx context.Context, took, allocated *frame.Sample) error {
	err := r.changing.Again(ctx)
	if err = errors.Join(err, pause(ctx, period-time.Since(r.last))); err != nil {
		return err
	}
	before, begun := stage.Allocated(), time.Now()
	r.last = begun
	if err := r.refresh(ctx); err != nil {
		return err
	}
	took.Value, allocated.Value = time.Since(begun).Seconds(), stage.Allocated()-before
	return nil
}

// pause waits for real, as what follows the fleet does.
func pause(ctx context.Context, d time.Duration) error {
	select {
	case <-time.After(d):
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// refresh lets one happen.
func (r *refreshing) refresh(ctx context.Context) error {
	r.clock.pass(period)
	return r.fresh(ctx)
}

// fresh waits until there is a list that was asked for since, in both formats. The one
// before it is older by a period.
func (r *refreshing) fresh(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, refreshWithin)
	defer cancel()
	for since := time.Now(); ; {
		answer := r.get(ctx, "?format=txt")
		age, err := strconv.Atoi(answer.Header().Get("Age"))
		if answer.Code == http.StatusOK && err == nil && age <= int(time.Since(since).Seconds()) {
			if answer = r.get(ctx, ""); answer.Code != http.StatusOK {
				return fmt.Errorf("GET /v1/discovery: %d: %.200s", answer.Code, answer.Body)
			}
			return nil
		}
		select {
		case <-time.After(time.Millisecond):
		case <-ctx.Done():
			return fmt.Errorf("waiting for a refresh: %w; %d: %.200s", ctx.Err(), answer.Code, answer.Body)
		}
	}
}

func (r *refreshing) get(ctx context.Context, query string) *httptest.ResponseRecorder {
	answer := httptest.NewRecorder()
	question := httptest.NewRequestWithContext(ctx, http.MethodGet, "http://127.0.0.1/v1/discovery"+query, nil)
	r.server.Handler().ServeHTTP(answer, question)
	return answer
}

// clock is ahead by as much as it is told to, and ticks only then.
type clock struct {
	mu      sync.Mutex
	ahead   time.Duration
	tickers []chan time.Time
}

// Now is later than it is.
func (c *clock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return time.Now().Add(c.ahead)
}

// Ticker ticks when time passes.
func (c *clock) Ticker(time.Duration) (ticks <-chan time.Time, stop func()) {
	c.mu.Lock()
	defer c.mu.Unlock()
	ticker := make(chan time.Time, 1)
	c.tickers = append(c.tickers, ticker)
	return ticker, func() {}
}

func (c *clock) pass(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.ahead += d
	for _, ticker := range c.tickers {
		select {
		case ticker <- time.Now().Add(c.ahead):
		default:
		}
	}
}
