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
	"github.com/egressfleet/egressfleet/testsuite/bench/frame"
	"github.com/egressfleet/egressfleet/testsuite/bench/stage"
)

const (
	// period is between two refreshes, as the server counts it.
	period = 5 * time.Second
	// repeats are the refreshes of a run after which memory must be as before.
	repeats       = 2
	refreshWithin = time.Minute
	seconds       = 1.0
)

// Refresh lets the list be refreshed from a real Temporal server.
func Refresh() frame.Part {
	return frame.Part{
		Name: "discovery-refresh", About: "a refresh of the list from Temporal, until it is there as JSON and as text",
		Sizes: []int{100, 1000, most}, Open: openRefresh,
		Figures: []frame.Figure{
			// Beside it the pages of the listing, read and thrown away.
			{Name: "time", Unit: "s", Must: frame.AtMost(seconds), At: most},
			{Name: "allocated", Unit: "B"},
			// Beside it what was held before the first refresh of the run.
			{Name: "held", Unit: "B", Must: frame.RatioAtMost(1.1), At: most},
		},
	}
}

// refreshing is a server whose time is in our hand.
type refreshing struct {
	stage  *stage.Stage
	size   int
	clock  *clock
	server *server.Server
	stop   func() error
}

func openRefresh(ctx context.Context, size int) (frame.Scene, error) {
	s, err := stage.Open(ctx, stage.Proxies(size))
	if err != nil {
		return frame.Scene{}, err
	}
	r := &refreshing{stage: s, size: size, clock: &clock{}}
	r.server = server.New(s.Fleet, server.Options{Clock: r.clock}) //nolint:contextcheck // every request has its own
	l, err := new(net.ListenConfig).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return frame.Scene{}, errors.Join(err, s.Close())
	}
	within, cancel := context.WithCancel(ctx)
	ended := make(chan error, 1)
	go func() { ended <- r.server.Run(within, l) }()
	r.stop = func() error { cancel(); return <-ended }
	if err := r.fresh(ctx); err != nil {
		return frame.Scene{}, errors.Join(err, r.close())
	}
	return frame.Scene{Run: r.run, Close: r.close}, nil
}

func (r *refreshing) close() error { return errors.Join(r.stop(), r.stage.Close()) }

func (r *refreshing) run(ctx context.Context, number int) (frame.Samples, error) {
	var took, allocated, held frame.Sample
	held.Baseline = stage.Held()
	err := frame.Turns(number, func() error {
		begun := time.Now()
		n, err := r.stage.List(ctx)
		took.Baseline = time.Since(begun).Seconds()
		if err == nil && n != r.size {
			err = fmt.Errorf("%d proxies are listed, and not %d", n, r.size)
		}
		return err
	}, func() error {
		before, begun := stage.Allocated(), time.Now()
		if err := r.refresh(ctx); err != nil {
			return err
		}
		took.Value, allocated.Value = time.Since(begun).Seconds(), stage.Allocated()-before
		return nil
	})
	for range repeats {
		err = errors.Join(err, r.refresh(ctx))
	}
	held.Value = stage.Held()
	return frame.Samples{"time": took, "allocated": allocated, "held": held}, err
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
