// Package create measures how fast a fleet comes and goes: from the PUT of each proxy
// until all are Running, and from the DELETE until all workflows have closed, over a
// backend that takes no time. Beside it are bare workflows that have as many activities,
// memos and search attributes, and plain ones with one activity, on the same server. It
// may import every room. Start reading at Part; twin.go has the baseline, steps.go what
// keeps it honest.
package create

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	v1 "github.com/egressfleet/egressfleet/api/v1"
	"github.com/egressfleet/egressfleet/providers"
	"github.com/egressfleet/egressfleet/starter/fleet"
	"github.com/egressfleet/egressfleet/testsuite/bench/frame"
	"github.com/egressfleet/egressfleet/testsuite/bench/live"
	"github.com/egressfleet/egressfleet/testsuite/bench/stage"
	"github.com/egressfleet/egressfleet/testsuite/fake"
	"github.com/egressfleet/egressfleet/workflows/proxy"
)

const (
	most         = 1000
	enough       = 0.7 // of the bare rate
	usualClients = 16
	warmWithin   = 2 * time.Minute
)

// Part makes and deletes so many proxies.
func Part() frame.Part {
	return frame.Part{
		Name:  "create",
		About: "PUTs until all are Running, and DELETEs until all are closed, beside bare workflows of as many steps",
		Sizes: []int{100, 300, most},
		Open: func(ctx context.Context, size int) (frame.Scene, error) {
			return open(ctx, crowd{size, usualClients})
		},
		Figures: figures(frame.RatioAtLeast(enough), most),
	}
}

// Clients makes and deletes proxies with so many clients at once: the size is theirs.
func Clients() frame.Part {
	return frame.Part{
		Name: "clients", About: "the same for 300 proxies, by the number of clients that ask at once",
		Sizes: []int{1, 4, usualClients, 64}, Runs: 3,
		Open: func(ctx context.Context, size int) (frame.Scene, error) {
			const things = 300
			return open(ctx, crowd{things, size})
		},
		Figures: figures(frame.Must{}, 0),
	}
}

func figures(must frame.Must, at int) []frame.Figure {
	return []frame.Figure{
		{Name: "rate", Unit: "proxies/s", Must: must, At: at},
		{Name: "delete rate", Unit: "proxies/s", Must: must, At: at},
		{Name: "rate, of one activity", Unit: "proxies/s"},
		{Name: "PUT p99", Unit: "ms"},
		{Name: "DELETE p99", Unit: "ms"},
		{Name: ofServer, Unit: "ms of a processor"},
		{Name: ofDatabase, Unit: "ms of a processor"},
		{Name: ofUs, Unit: "ms of a processor"},
		{Name: "delete, " + ofServer, Unit: "ms of a processor"},
		{Name: "delete, " + ofDatabase, Unit: "ms of a processor"},
		{Name: "delete, " + ofUs, Unit: "ms of a processor"},
	}
}

// scene is a fleet, its twin, and who asks for proxies.
type scene struct {
	crowd     crowd
	fleet     *live.Fleet
	bare      bare
	backend   *fake.Provider
	stopTwin  func()
	processes processes
	name      string // of all that this scene makes
}

func open(ctx context.Context, c crowd) (_ frame.Scene, err error) {
	s := &scene{
		crowd: c, name: "b" + strconv.FormatInt(time.Now().UnixMilli(), 36), stopTwin: func() {},
		backend: fake.New(stage.Provider, fake.WithInstallation(live.Installation)),
	}
	s.fleet, s.processes, err = openFleet(ctx, live.Options{
		Backends: map[string]providers.Provider{stage.Provider: s.backend},
		Timing:   proxy.DefaultTiming(), Worker: live.AsInProduction(),
	})
	if err != nil {
		return frame.Scene{}, err
	}
	s.bare.temporal = s.fleet.Temporal
	s.stopTwin, err = serveTwin(s.fleet.Temporal, live.AsInProduction())
	for _, first := range []func(context.Context) error{s.warm, s.compare} {
		if err == nil {
			err = first(ctx)
		}
	}
	if err != nil {
		return frame.Scene{}, errors.Join(err, s.close())
	}
	return frame.Scene{Run: s.run, Close: s.close}, nil
}

func (s *scene) close() error {
	s.stopTwin()
	return s.fleet.Close()
}

// put, remove and prefix are those of bare, for proxies.
func (s *scene) put(ctx context.Context, of string, n int) error {
	p := stage.Proxies(1)[0]
	p.Metadata = v1.Metadata{Namespace: of, Name: live.Name(n), Labels: p.Metadata.Labels}
	_, created, err := s.fleet.Apply(ctx, v1.Proxy{Metadata: p.Metadata, Spec: p.Spec}, fleet.Request{ID: "put"})
	if err == nil && !created {
		err = fmt.Errorf("proxy %s/%s was there", of, p.Metadata.Name)
	}
	return err
}

func (s *scene) remove(ctx context.Context, of string, n int) error {
	_, err := s.fleet.Delete(ctx, of, live.Name(n), "bench", fleet.Request{ID: "delete"})
	return err
}

func (s *scene) prefix(of string) string { return proxy.IDPrefix(of) }

// side is one of both.
type side interface {
	put(ctx context.Context, of string, n int) error
	remove(ctx context.Context, of string, n int) error
	prefix(of string) string
}

func running(prefix string) string {
	return fmt.Sprintf("WorkflowId STARTS_WITH '%s' AND ExecutionStatus = 'Running' AND ProxyPhase = '%s'",
		prefix, v1.PhaseRunning)
}

func completed(prefix string) string {
	return fmt.Sprintf("WorkflowId STARTS_WITH '%s' AND ExecutionStatus = 'Completed'", prefix)
}

// life is what one side takes to come and to go.
type life struct{ create, remove cost }

func (s *scene) live(ctx context.Context, of string, who side) (l life, err error) {
	l.create, err = s.measured(ctx, running(who.prefix(of)), func(ctx context.Context, n int) error {
		return who.put(ctx, of, n)
	})
	if err != nil {
		return l, err
	}
	l.remove, err = s.measured(ctx, completed(who.prefix(of)), func(ctx context.Context, n int) error {
		return who.remove(ctx, of, n)
	})
	return l, err
}

func (s *scene) run(ctx context.Context, number int) (frame.Samples, error) {
	of := fmt.Sprintf("%s-%d", s.name, number)
	var twins, ours life
	var plain cost
	err := frame.Turns(number,
		func() (err error) { twins, err = s.live(ctx, of, s.bare); return err },
		func() (err error) { ours, err = s.live(ctx, of, s); return err })
	if err != nil {
		return nil, err
	}
	plain, err = s.measured(ctx, completed(plainPrefix(of)), func(ctx context.Context, n int) error {
		return s.bare.plainly(ctx, of, n)
	})
	if left := len(s.backend.Instances()); err == nil && left > 0 {
		err = fmt.Errorf("%d instances are left", left)
	}
	return samples(ours, twins, plain), err
}

func samples(ours, twins life, plain cost) frame.Samples {
	of := func(ours, twin float64) frame.Sample { return frame.Sample{Value: ours, Baseline: twin} }
	all := frame.Samples{
		"rate": of(ours.create.rate, twins.create.rate), "delete rate": of(ours.remove.rate, twins.remove.rate),
		"rate, of one activity": of(ours.create.rate, plain.rate),
		"PUT p99":               of(ours.create.p99, twins.create.p99), "DELETE p99": of(ours.remove.p99, twins.remove.p99),
	}
	for _, who := range []string{ofServer, ofDatabase, ofUs} {
		all[who] = of(ours.create.cpu[who], twins.create.cpu[who])
		all["delete, "+who] = of(ours.remove.cpu[who], twins.remove.cpu[who])
	}
	return all
}

// warm makes twins until so many in a row were made: each part of a server learns by
// itself of search attributes that are new, and fails until then.
func (s *scene) warm(ctx context.Context) error {
	const inARow = 20
	until := time.Now().Add(warmWithin)
	for n, well := 0, 0; well < inARow; n++ {
		err := s.bare.put(ctx, s.name+"-warm", n)
		if well++; err == nil {
			continue
		}
		if well = 0; time.Now().After(until) || ctx.Err() != nil {
			return fmt.Errorf("no %d workflows in a row could be started within %s: %w", inARow, warmWithin, err)
		}
	}
	return nil
}

// compare lets one of each live, and compares what they did.
func (s *scene) compare(ctx context.Context) error {
	of, one := s.name+"-first", *s
	one.crowd = crowd{1, 1}
	for _, who := range []side{s.bare, s} {
		if _, err := one.live(ctx, of, who); err != nil {
			return err
		}
	}
	twins, err := read(ctx, s.fleet.Temporal, s.bare.id(of, 0))
	if err != nil {
		return err
	}
	ours, err := read(ctx, s.fleet.Temporal, proxy.WorkflowID(of, live.Name(0)))
	if err != nil {
		return err
	}
	twinCreate, twinDelete := stepsOf(twins)
	create, remove := stepsOf(ours)
	return errors.Join(check("create", create, twinCreate), check("delete", remove, twinDelete))
}
