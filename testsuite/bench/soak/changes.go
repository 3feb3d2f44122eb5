package soak

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	v1 "github.com/egressfleet/egressfleet/api/v1"
	"github.com/egressfleet/egressfleet/starter/fleet"
	"github.com/egressfleet/egressfleet/testsuite/bench/live"
	"github.com/egressfleet/egressfleet/testsuite/bench/shipped"
	"github.com/egressfleet/egressfleet/testsuite/gcefake"
	"github.com/egressfleet/egressfleet/workflows/proxy"
)

const (
	changeEvery = 500 * time.Millisecond
	together    = 8 // changes at a time; on a machine that is too slow for them there are fewer
	seed        = 7
	firstPort   = 3000
	ports       = 1000
	// faulty is which part of the changes may fail. Those that were given up since nobody had
	// time for them are not among them: they are missing in the rate.
	faulty = 0.01
)

// kinds are what happens, one after the other.
var kinds = []struct {
	name string
	do   func(*changes, context.Context) error
}{
	{"replace", (*changes).replace}, // one proxy is deleted, and another one made
	{"respec", (*changes).respec},
	{"label", (*changes).label},
	{"hold", (*changes).hold},
	{"health", (*changes).health},
	{"lose", (*changes).lose},
	{"discover", (*changes).discover},
}

// changes are those of one soak. The first half of the proxies stay to the end, and the
// others come and go. Only who stays is put again: a put after a delete would make one more.
type changes struct {
	*scene

	mu      sync.Mutex
	random  *rand.Rand
	staying []string // names
	moving  []string
	made    int
	shown   []v1.Proxy
	done    map[string]int // by kind
	refused int            // by a proxy that is on its way out, or is gone
	late    int            // not answered in time; what was asked may have been done
	faults  []error
}

func newChanges(s *scene) *changes {
	c := &changes{scene: s, random: rand.New(rand.NewPCG(seed, seed)), done: map[string]int{}} //nolint:gosec // no secret
	for range s.size {
		c.moving = append(c.moving, c.name())
	}
	c.staying, c.moving = c.moving[:s.size/2], c.moving[s.size/2:]
	return c
}

// name is a new one.
func (c *changes) name() string {
	c.made++
	return live.Name(c.made - 1)
}

// populate makes all of them.
func (c *changes) populate(ctx context.Context) error {
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(together)
	for _, name := range slices.Concat(c.staying, c.moving) {
		group.Go(func() error { return c.patiently(ctx, func() error { return c.put(ctx, name, firstPort, "none") }) })
	}
	return group.Wait()
}

// patiently asks again while the worker says that it is busy.
func (c *changes) patiently(ctx context.Context, ask func() error) error {
	for begun := time.Now(); ; {
		err := ask()
		if status(err) != http.StatusServiceUnavailable || time.Since(begun) > missedMost {
			return err
		}
		select {
		case <-time.After(changeEvery):
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// run changes something at every tick until ctx ends, and then waits for what is going on.
func (c *changes) run(ctx context.Context) {
	ticks := time.NewTicker(changeEvery)
	defer ticks.Stop()
	var group errgroup.Group
	group.SetLimit(together)
	defer func() { _ = group.Wait() }()
	for n := 0; ; n++ {
		select {
		case <-ticks.C:
		case <-ctx.Done():
			return
		}
		kind := kinds[n%len(kinds)]
		// A change that has begun is finished: half of a replacement would be a proxy less.
		whole := context.WithoutCancel(ctx)
		group.Go(func() error { c.count(kind.name, kind.do(c, whole)); return nil })
	}
}

func (c *changes) count(kind string, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch is := status(err); {
	case err == nil:
		c.done[kind]++
	case is == http.StatusNotFound || is == http.StatusConflict:
		c.refused++
	case is == http.StatusServiceUnavailable || errors.Is(err, fleet.ErrUnavailable) || errors.Is(err, fleet.ErrNoWorker):
		c.late++
	default:
		c.faults = append(c.faults, fmt.Errorf("%s: %w", kind, err))
	}
}

// status is that of an answer of the API; 0 for any other error.
func status(err error) int {
	if s, ok := errors.AsType[*shipped.StatusError](err); ok {
		return s.Status
	}
	return 0
}

func (c *changes) total() (n int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, done := range c.done {
		n += done
	}
	return n
}

// judge returns an error for a soak in which too much failed, or something never happened.
func (c *changes) judge() error {
	total := c.total()
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, kind := range kinds {
		if c.done[kind.name] == 0 {
			return fmt.Errorf("this run proves too little: %q never happened", kind.name)
		}
	}
	if float64(len(c.faults)) > faulty*float64(total) {
		return fmt.Errorf("%d of %d changes failed, the first: %w", len(c.faults), total, c.faults[0])
	}
	return nil
}

// String is how often what happened.
func (c *changes) String() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	var b strings.Builder
	for _, kind := range slices.Sorted(maps.Keys(c.done)) {
		fmt.Fprintf(&b, "%s=%d ", kind, c.done[kind])
	}
	fmt.Fprintf(&b, "refused=%d late=%d faults=%d", c.refused, c.late, len(c.faults))
	if n := len(c.faults); n > 0 {
		fmt.Fprintf(&b, " last=%.200q", c.faults[n-1].Error())
	}
	return b.String()
}

// see keeps what the proxies show now.
func (c *changes) see(shown []v1.Proxy) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.shown = shown
}

// one of some, none of none.
func one[T any](c *changes, of func() []T) (_ T, ok bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	all := of()
	if len(all) == 0 {
		var none T
		return none, false
	}
	return all[c.random.IntN(len(all))], true
}

// any proxy, whether it stays or not.
func (c *changes) any() string {
	name, _ := one(c, func() []string { return slices.Concat(c.staying, c.moving) })
	return name
}

func (c *changes) number(most int) int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.random.IntN(most)
}

func path(name string) string { return "/v1/namespaces/" + live.Namespace + "/proxies/" + name }

func (c *changes) put(ctx context.Context, name string, port int, team string) error {
	body := fmt.Sprintf(`{"metadata": {"labels": {"team": %q}}, "spec": {"provider": %q, "port": %d, `+
		`"placement": {"region": "us-central1"}}}`, team, shipped.Provider, port)
	_, err := c.worker.Ask(ctx, http.MethodPut, path(name), body)
	return err
}

// replace deletes a proxy and makes another one, under a new name.
func (c *changes) replace(ctx context.Context) error {
	c.mu.Lock()
	at := c.random.IntN(len(c.moving))
	old, next := c.moving[at], c.name()
	c.moving = slices.Delete(c.moving, at, at+1) // nobody else changes it
	c.mu.Unlock()
	err := c.patiently(ctx, func() error {
		_, err := c.worker.Ask(ctx, http.MethodDelete, path(old), "")
		return err
	})
	if err == nil {
		old, err = next, c.patiently(ctx, func() error { return c.put(ctx, next, firstPort, "none") })
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.moving = append(c.moving, old)
	return err
}

// respec has an instance replaced.
func (c *changes) respec(ctx context.Context) error {
	name, _ := one(c, func() []string { return c.staying })
	return c.put(ctx, name, firstPort+c.number(ports), "none")
}

// label changes what is shown and nothing else, unless the port was another one.
func (c *changes) label(ctx context.Context) error {
	p, ok := one(c, func() []v1.Proxy {
		return slices.DeleteFunc(slices.Clone(c.shown), func(p v1.Proxy) bool {
			return !slices.Contains(c.staying, p.Metadata.Name)
		})
	})
	if !ok {
		return nil
	}
	return c.put(ctx, p.Metadata.Name, p.Spec.Port, fmt.Sprintf("team-%d", c.number(ports)))
}

func (c *changes) hold(ctx context.Context) error {
	_, err := c.worker.Ask(ctx, http.MethodPost, path(c.any())+"/hold", `{"for": "30s", "reason": "soak"}`)
	return err
}

// health is what a round tells a proxy whose verdict has changed.
func (c *changes) health(ctx context.Context) error {
	p, ok := one(c, func() []v1.Proxy { return c.shown })
	if !ok {
		return nil
	}
	r := proxy.HealthReport{Healthy: c.number(2) == 0, Reason: v1.ReasonHealthy, EgressIP: p.Status.IP}
	if !r.Healthy {
		r.Reason, r.Message = v1.ReasonUnreachable, "no answer"
	}
	return c.fleet.Report(ctx, p, r)
}

// lose takes an instance away: its machine stops, or nothing of it is left.
func (c *changes) lose(context.Context) error {
	all := c.cloud.Instances()
	if len(all) == 0 {
		return nil
	}
	i := all[c.number(len(all))]
	zone := i.GetZone()[strings.LastIndex(i.GetZone(), "/")+1:]
	machine := c.cloud.Instance(gcefake.Place{Zone: zone, Name: i.GetName()})
	if c.number(2) == 0 {
		machine.Preempt()
	} else {
		machine.Vanish()
	}
	return nil
}

// discover is what a client asks for.
func (c *changes) discover(ctx context.Context) error {
	_, err := c.worker.Ask(ctx, http.MethodGet, "/v1/discovery", "")
	return err
}
