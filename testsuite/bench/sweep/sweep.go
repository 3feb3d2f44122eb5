// Package sweep measures the two sweeps that list a whole fleet, OrphanGC and DriftSweep,
// beside the listings that they cannot do without: one of the backend and one of
// Visibility. Both are the workflows of production on a real Temporal server. It may
// import every room. Start reading at Part.
package sweep

import (
	"context"
	"errors"
	"fmt"
	"log/slog"

	"go.temporal.io/api/enums/v1"
	"go.temporal.io/sdk/worker"
	"google.golang.org/protobuf/proto"

	"github.com/egressfleet/egressfleet/activities"
	v1 "github.com/egressfleet/egressfleet/api/v1"
	"github.com/egressfleet/egressfleet/providers"
	"github.com/egressfleet/egressfleet/starter/fleet"
	"github.com/egressfleet/egressfleet/testsuite/bench/frame"
	"github.com/egressfleet/egressfleet/testsuite/bench/stage"
	"github.com/egressfleet/egressfleet/testsuite/fake"
	"github.com/egressfleet/egressfleet/worker/hands"
	"github.com/egressfleet/egressfleet/workflows"
	"github.com/egressfleet/egressfleet/workflows/drift"
	"github.com/egressfleet/egressfleet/workflows/gc"
	"github.com/egressfleet/egressfleet/workflows/proxy"
)

const (
	most = 10_000
	// hundredth of the instances have no living owner.
	hundredth = 100
	// payload is the most that an event of a history may have, in bytes.
	payload = 256 << 10
)

// Part sweeps a fleet in which one of a hundred instances is an orphan.
func Part() frame.Part {
	return frame.Part{
		Name: "sweep", About: "OrphanGC and DriftSweep, beside one listing of the backend and one of Visibility",
		Sizes: []int{100, 1000, most}, Open: open,
		Figures: []frame.Figure{
			{Name: "gc", Unit: "s", Must: frame.RatioAtMost(2), At: most},
			{Name: "drift", Unit: "s", Must: frame.RatioAtMost(2), At: most},
			{Name: "largest event", Unit: "B", Must: frame.AtMost(payload)},
			// Beside it what was held before the sweeps of the run.
			{Name: "held", Unit: "B", Must: frame.RatioAtMost(1.1), At: most},
			{Name: "allocated", Unit: "B"},
		},
	}
}

// scene is a fleet whose instances are at a backend in memory, and a worker that sweeps.
type scene struct {
	stage   *stage.Stage
	backend *fake.Provider
	worker  worker.Worker
	orphans []v1.Proxy // whose workflows were terminated
	living  int
}

func open(ctx context.Context, size int) (frame.Scene, error) {
	proxies := stage.Proxies(size)
	backend := fake.New(stage.Provider, fake.WithInstallation(stage.Installation))
	for _, p := range proxies {
		plant(backend, p)
	}
	opened, err := stage.Open(ctx, proxies)
	if err != nil {
		return frame.Scene{}, err
	}
	orphans := max(size/hundredth, 1)
	s := &scene{stage: opened, backend: backend, orphans: proxies[:orphans], living: size - orphans}
	if err := s.orphan(ctx); err != nil {
		return frame.Scene{}, errors.Join(err, opened.Close())
	}
	quiet := providers.WithLogger(context.WithoutCancel(ctx), slog.New(slog.DiscardHandler))
	s.worker = worker.New(opened.Temporal, stage.Queue, worker.Options{BackgroundActivityContext: quiet})
	workflows.Register(s.worker, proxy.DefaultTiming())
	instances := &activities.Instances{
		Lookup:       func(string) (providers.Provider, func(), bool) { return backend, func() {}, true },
		Installation: stage.Installation,
	}
	names := func() []string { return []string{stage.Provider} }
	activities.Register(s.worker, instances,
		&activities.Orphans{Instances: instances, Names: names, Owners: hands.Owners{Client: opened.Fleet}},
		&activities.Drift{Instances: instances, Names: names, Fleet: hands.Watched{Client: opened.Fleet}})
	if err := s.worker.Start(); err != nil {
		return frame.Scene{}, errors.Join(err, opened.Close())
	}
	return frame.Scene{Run: s.run, Close: s.close}, nil
}

// plant puts the instance of a proxy there, old enough to be an orphan.
func plant(backend *fake.Provider, p v1.Proxy) {
	backend.Plant(providers.Instance{
		ID: p.Status.ProviderID, UID: p.Metadata.UID, Installation: stage.Installation,
		Owner: p.Metadata.Namespace + "/" + p.Metadata.Name, State: providers.StateRunning, IP: p.Status.IP,
		CreatedAt: p.Metadata.CreatedAt,
	})
}

// orphan ends the workflows of the orphans in the one way that leaves their instances.
func (s *scene) orphan(ctx context.Context) error {
	for _, p := range s.orphans {
		id := proxy.WorkflowID(p.Metadata.Namespace, p.Metadata.Name)
		if err := s.stage.Temporal.TerminateWorkflow(ctx, id, "", "an orphan of the bench"); err != nil {
			return err
		}
	}
	return s.stage.Shown(ctx, s.living)
}

func (s *scene) close() error {
	s.worker.Stop()
	return s.stage.Close()
}

func (s *scene) run(ctx context.Context, number int) (frame.Samples, error) {
	for _, p := range s.orphans {
		plant(s.backend, p)
	}
	var listed, collected, drifted float64
	before, allocated := stage.Held(), stage.Allocated()
	err := frame.Turns(number,
		func() (err error) { listed, err = frame.Timed(func() error { return s.list(ctx) }); return err },
		func() (err error) {
			// Drift first: it sees the orphans, too.
			if drifted, err = frame.Timed(func() error { return s.drift(ctx) }); err != nil {
				return err
			}
			collected, err = frame.Timed(func() error { return s.collect(ctx) })
			return err
		})
	if err != nil {
		return nil, err
	}
	allocated = stage.Allocated() - allocated
	held := frame.Sample{Value: stage.Held(), Baseline: before}
	largest, err := s.largest(ctx)
	return frame.Samples{
		"gc": {Value: collected, Baseline: listed}, "drift": {Value: drifted, Baseline: listed},
		"largest event": {Value: largest}, "held": held, "allocated": {Value: allocated},
	}, err
}

// list is the baseline: what no sweep can do without.
func (s *scene) list(ctx context.Context) error {
	all, err := s.backend.Inventory(ctx)
	if err != nil {
		return err
	}
	n, err := s.stage.List(ctx)
	if want := s.living + len(s.orphans); err == nil && (n != s.living || len(all.Instances) < s.living) {
		err = fmt.Errorf("%d workflows and %d instances are listed; there should be %d and about %d",
			n, len(all.Instances), s.living, want)
	}
	return err
}

func (s *scene) collect(ctx context.Context) error {
	var r gc.Result
	if err := s.stage.Fleet.RunSweep(ctx, fleet.OrphanGC(), gc.Input{}, &r); err != nil {
		return err
	}
	if len(r.Sweeps) != 1 || r.Sweeps[0].Deleted != len(s.orphans) || r.Sweeps[0].Living != s.living {
		return fmt.Errorf("the collection came to %.2000s, and not to %d orphans", r.Markdown(), len(s.orphans))
	}
	return nil
}

func (s *scene) drift(ctx context.Context) error {
	var r drift.Result
	if err := s.stage.Fleet.RunSweep(ctx, fleet.DriftSweep(), drift.Input{}, &r); err != nil {
		return err
	}
	want := s.living + len(s.orphans)
	if len(r.Sweeps) != 1 || r.Sweeps[0].Listed != want || r.Sweeps[0].Running != s.living || r.Sweeps[0].Hinted != 0 {
		return fmt.Errorf("the drift sweep came to %.2000s, and not to %d instances without a hint", r.Markdown(), want)
	}
	return nil
}

// largest is the largest event of the histories of both sweeps, in bytes.
func (s *scene) largest(ctx context.Context) (bytes float64, err error) {
	for _, schedule := range []fleet.Schedule{fleet.OrphanGC(), fleet.DriftSweep()} {
		history := s.stage.Temporal.GetWorkflowHistory(ctx, schedule.ID+"/by-hand", "", false,
			enums.HISTORY_EVENT_FILTER_TYPE_ALL_EVENT)
		for history.HasNext() {
			event, err := history.Next()
			if err != nil {
				return 0, err
			}
			bytes = max(bytes, float64(proto.Size(event)))
		}
	}
	return bytes, nil
}
