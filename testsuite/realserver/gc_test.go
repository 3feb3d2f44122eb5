package realserver

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.temporal.io/api/enums/v1"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/temporal"
	"golang.org/x/sync/errgroup"
	"google.golang.org/protobuf/proto"

	"github.com/egressfleet/egressfleet/activities"
	v1 "github.com/egressfleet/egressfleet/api/v1"
	"github.com/egressfleet/egressfleet/providers"
	"github.com/egressfleet/egressfleet/starter/fleet"
	"github.com/egressfleet/egressfleet/testsuite/fake"
	"github.com/egressfleet/egressfleet/worker/hands"
	"github.com/egressfleet/egressfleet/workflows/gc"
	"github.com/egressfleet/egressfleet/workflows/installation"
)

// asked are the owners as the sweep asks for them, with what a test puts in between.
type asked struct {
	*fleet.Client
	blind    bool            // Visibility shows nothing
	living   map[string]bool // what it shows instead of what is there; nil for that
	limit    atomic.Int64    // so many owners are answered for; 0 is no limit
	count    atomic.Int64
	answered sync.Map // the UIDs of those
}

func (o *asked) LivingUIDs(ctx context.Context) (map[string]bool, error) {
	if o.blind || o.living != nil {
		return o.living, nil
	}
	return o.Client.LivingUIDs(ctx)
}

func (o *asked) Owner(ctx context.Context, owner, uid string) (activities.OwnerState, error) {
	if o.silent(uid) {
		return activities.OwnerState{}, errors.New("connection refused")
	}
	return hands.Owners{Client: o.Client}.Owner(ctx, owner, uid)
}

func (o *asked) silent(uid string) bool {
	limit := o.limit.Load()
	if _, known := o.answered.Load(uid); known || limit == 0 {
		return false
	}
	if o.count.Add(1) > limit {
		return true
	}
	o.answered.Store(uid, true)
	return false
}

// gcLab is a lab with a birth record of its own installation, whose workers sweep.
type gcLab struct {
	*lab
	owners *asked
}

func newGCLab(t *testing.T) *gcLab {
	t.Helper()
	l := newLab(t, quick())
	l.installation = l.name
	l.Client = fleet.New(l.temporal, l.name, fleet.WithTaskQueue(l.queue), fleet.WithDataConverter(l.keys.DataConverter()))
	l.backend = fake.WithFaults(fake.New("fake", fake.WithInstallation(l.name)))
	g := &gcLab{lab: l, owners: &asked{Client: l.Client}}
	l.hands = g.sweepers()
	_, err := l.temporal.ExecuteWorkflow(t.Context(), client.StartWorkflowOptions{
		ID: installation.WorkflowID(l.name), TaskQueue: l.queue,
	}, installation.WorkflowType)
	require.NoError(t, err)
	t.Cleanup(func() {
		ctx := context.WithoutCancel(t.Context())
		_ = l.temporal.TerminateWorkflow(ctx, installation.WorkflowID(l.name), "", "end of the test")
	})
	return g
}

// sweepers are the activities that ask who owns what.
func (g *gcLab) sweepers() []any {
	return []any{
		&activities.Orphans{
			Instances: g.instances(), Names: func() []string { return []string{"fake"} }, Owners: g.owners,
		},
		&activities.Adoption{Instances: g.instances(), Fleet: hands.Adopters{Client: g.Client}},
	}
}

// aged makes everything at the backend an hour old.
func (g *gcLab) aged() {
	for _, i := range g.backend.Instances() {
		g.backend.SetCreatedAt(i.ID, time.Now().Add(-time.Hour))
	}
}

// plant puts an instance of an owner there, created at a time.
func (g *gcLab) plant(uid, owner string, at time.Time) string {
	id := fake.ID(providers.NameFromUID(uid))
	g.backend.Plant(providers.Instance{
		ID: id, UID: uid, Installation: g.installation, Owner: owner,
		State: providers.StateRunning, IP: "127.9.9.9", CreatedAt: at,
	})
	return id
}

// collect runs the workflow once and returns its sweep.
func (g *gcLab) collect(in gc.Input) gc.Sweep {
	g.t.Helper()
	in.Providers = []string{"fake"}
	r, err := g.swept(in)
	require.NoError(g.t, err)
	require.Len(g.t, r.Sweeps, 1)
	return r.Sweeps[0]
}

func (g *gcLab) swept(in gc.Input) (r gc.Result, err error) {
	s := fleet.OrphanGC()
	s.ID = g.name
	return r, g.RunSweep(g.t.Context(), s, in, &r)
}

func (g *gcLab) terminated() {
	g.t.Helper()
	require.NoError(g.t, g.temporal.TerminateWorkflow(g.t.Context(), g.id(), "", "test"))
}

func TestTheOwnersOfInstances(t *testing.T) {
	for name, tc := range map[string]struct {
		arrange func(*gcLab)
		why     string // of the only finding; empty: none
		left    int
	}{
		"it runs":                               {func(*gcLab) {}, "", 1},
		"it runs, and Visibility shows nothing": {func(g *gcLab) { g.owners.blind = true }, "", 1},
		"it continued as new, and Visibility shows nothing": {
			func(g *gcLab) { g.owners.blind = true; g.handOver(g.runID()); g.running() }, "", 1,
		},
		"it was terminated": {func(g *gcLab) { g.terminated() }, activities.WhyOwnerClosed, 0},
		"it was terminated after it continued as new": {
			func(g *gcLab) { g.handOver(g.runID()); g.running(); g.terminated() }, activities.WhyOwnerClosed, 0,
		},
		"it left the instance behind": {
			func(g *gcLab) {
				g.update("delete", map[string]any{"reason": "test", "skipCleanup": true})
				require.ErrorContains(g.t, g.WaitGone(g.t.Context(), "default", g.name), "left")
			}, activities.WhyOwnerClosed, 0,
		},
		"it was terminated and is there again": {
			func(g *gcLab) { g.terminated(); g.apply("again", spec); g.running() }, activities.WhyOwnerReplaced, 1,
		},
		"it was terminated, was there again, and ended": {
			func(g *gcLab) {
				g.terminated()
				g.apply("again", spec)
				g.running()
				_, err := g.Delete(g.t.Context(), "default", g.name, "test", fleet.Request{})
				require.NoError(g.t, err)
				require.NoError(g.t, g.WaitGone(g.t.Context(), "default", g.name))
			}, activities.WhyOwnerClosed, 0,
		},
	} {
		t.Run(name, func(t *testing.T) {
			g := newGCLab(t)
			g.born()
			tc.arrange(g)
			g.aged()
			s := g.collect(gc.Input{})
			if tc.why == "" {
				require.Empty(t, s.Findings)
				require.Equal(t, 1, s.Living)
			} else {
				require.Len(t, s.Findings, 1)
				require.Equal(t, tc.why, s.Findings[0].Why)
				require.NotEmpty(t, s.Findings[0].Proof)
			}
			require.Len(t, g.backend.Instances(), tc.left)
		})
	}
}

func TestInstancesThatNobodyOwns(t *testing.T) {
	hour := time.Now().Add(-time.Hour)
	for name, tc := range map[string]struct {
		plant func(*gcLab)
		in    gc.Input
		why   string
		left  int
	}{
		"older than the birth record": {
			func(g *gcLab) { g.plant("u-"+g.name, "default/nobody", hour) }, gc.Input{}, activities.WhyAdoptable, 1,
		},
		"older than the birth record, and a person knows": {
			func(g *gcLab) { g.plant("u-"+g.name, "default/nobody", hour) },
			gc.Input{Unproven: true},
			activities.WhyAdoptable, 0,
		},
		"younger than the birth record": {
			func(g *gcLab) { g.plant("u-"+g.name, "default/nobody", time.Now()) },
			gc.Input{MinAge: time.Nanosecond},
			activities.WhyOwnerMissing, 0,
		},
		"too young to be looked at": {
			func(g *gcLab) { g.plant("u-"+g.name, "default/nobody", time.Now().Add(-9*time.Minute-50*time.Second)) },
			gc.Input{},
			"", 1,
		},
		"of an unknown age": {
			func(g *gcLab) { g.plant("u-"+g.name, "default/nobody", time.Time{}) }, gc.Input{}, activities.WhyAdoptable, 1,
		},
		"without a UID": {
			func(g *gcLab) {
				g.backend.Plant(providers.Instance{ID: fake.ID("x"), Installation: g.installation, CreatedAt: hour})
			},
			gc.Input{},
			activities.WhyNoUID, 1,
		},
		"without an owner mark": {func(g *gcLab) { g.plant("u-"+g.name, "", hour) }, gc.Input{}, activities.WhyNoOwner, 1},
		"with an owner mark that is none": {
			func(g *gcLab) { g.plant("u-"+g.name, "no owner", hour) }, gc.Input{}, activities.WhyNotAsked, 1,
		},
	} {
		t.Run(name, func(t *testing.T) {
			g := newGCLab(t)
			g.work()
			tc.plant(g)
			s := g.collect(tc.in)
			if tc.why == "" {
				require.Empty(t, s.Findings)
			} else {
				require.Len(t, s.Findings, 1)
				require.Equal(t, tc.why, s.Findings[0].Why)
			}
			require.Len(t, g.backend.Instances(), tc.left)
		})
	}
}

func TestReport15TwoInstallationsOnOneBackend(t *testing.T) {
	ours := newGCLab(t)
	ours.work()
	theirs := fake.ID("theirs")
	ours.backend.Plant(providers.Instance{
		ID: theirs, UID: "v", Installation: "another", Owner: "default/b", State: providers.StateRunning,
		CreatedAt: time.Now().Add(-time.Hour),
	})
	s := ours.collect(gc.Input{Force: true, Unproven: true})
	require.Zero(t, s.Deleted)
	require.Len(t, ours.backend.Instances(), 1)
}

func TestTemporalThatFallsSilentDuringASweepConvictsNobodyMore(t *testing.T) {
	g := newGCLab(t)
	g.work()
	for i := range 5 {
		g.plant(fmt.Sprintf("u%d-%s", i, g.name), "default/nobody", time.Now())
	}
	g.owners.limit.Store(2)
	s := g.collect(gc.Input{MinAge: time.Nanosecond})
	require.Equal(t, 2, s.Deleted)
	require.Equal(t, 3, s.Doubts)
	require.Len(t, g.backend.Instances(), 3)
	g.owners.limit.Store(0)
	require.Equal(t, 3, g.collect(gc.Input{MinAge: time.Nanosecond}).Deleted, "the next sweep goes on")
}

func TestARefusedSweepFailsLoudlyWithItsFindings(t *testing.T) {
	g := newGCLab(t)
	g.work()
	for i := range 6 {
		g.plant(fmt.Sprintf("u%d-%s", i, g.name), "default/nobody", time.Now())
	}
	r, err := g.swept(gc.Input{Providers: []string{"fake"}, MinAge: time.Nanosecond})
	app, ok := errors.AsType[*temporal.ApplicationError](err)
	require.True(t, ok, "%v", err)
	require.Equal(t, gc.ErrRefused, app.Type())
	require.Len(t, r.Sweeps[0].Findings, 6)
	require.Len(t, g.backend.Instances(), 6)
	r, err = g.swept(gc.Input{Providers: []string{"fake"}, MinAge: time.Nanosecond, Force: true})
	require.NoError(t, err)
	require.Equal(t, 6, r.Sweeps[0].Deleted)
}

func TestAProviderThatIsNotThereDoesNotStallTheOthers(t *testing.T) {
	g := newGCLab(t)
	g.work()
	g.plant("u-"+g.name, "default/nobody", time.Now())
	r, err := g.swept(gc.Input{Providers: []string{"absent", "fake"}, MinAge: time.Nanosecond})
	require.NoError(t, err)
	require.Equal(t, v1.ReasonProviderNotConfigured, r.Sweeps[0].Fault.Reason)
	require.Equal(t, 1, r.Sweeps[1].Deleted)
}

// The instance of a terminated workflow goes by itself, and a schedule may be paused.
func TestTheScheduleCollects(t *testing.T) {
	g := newGCLab(t)
	g.born()
	s := fleet.OrphanGC()
	s.ID, s.Every, s.Input = "gc-"+g.name, time.Second, gc.Input{MinAge: time.Nanosecond}
	require.NoError(t, g.EnsureSchedules(t.Context(), s))
	t.Cleanup(func() {
		ctx := context.WithoutCancel(t.Context())
		_ = g.temporal.ScheduleClient().GetHandle(ctx, s.ID).Delete(ctx)
	})
	require.NoError(t, g.PauseSchedule(t.Context(), s.ID, "test"))
	state, err := g.ScheduleState(t.Context(), s.ID)
	require.NoError(t, err)
	require.True(t, state.Paused)
	require.Equal(t, "test", state.Note)

	g.terminated()
	require.NoError(t, g.EnsureSchedules(t.Context(), s), "ensuring it again")
	state, err = g.ScheduleState(t.Context(), s.ID)
	require.NoError(t, err)
	require.True(t, state.Paused, "leaves it paused")
	require.NoError(t, g.ResumeSchedule(t.Context(), s.ID, "test"))
	require.Eventually(t, func() bool { return len(g.backend.Instances()) == 0 }, soon, tick)
	require.Eventually(t, func() bool {
		state, err := g.ScheduleState(t.Context(), s.ID)
		require.NoError(t, err)
		return !state.LastSuccess.IsZero() && !state.LastRun.IsZero()
	}, soon, tick)

	require.NotEqual(t, enums.WORKFLOW_EXECUTION_STATUS_RUNNING, g.describe().WorkflowExecutionInfo.Status)
}

// scheduled is a schedule of this lab's own that is due once a day.
func (g *gcLab) scheduled() fleet.Schedule {
	s := fleet.OrphanGC()
	s.ID, s.Every = "gc-"+g.name, 24*time.Hour
	g.t.Cleanup(func() {
		ctx := context.WithoutCancel(g.t.Context())
		_ = g.temporal.ScheduleClient().GetHandle(ctx, s.ID).Delete(ctx)
	})
	return s
}

func TestWorkersThatStartAtOnceEnsureOneSchedule(t *testing.T) {
	g := newGCLab(t)
	s := g.scheduled()
	var group errgroup.Group
	for i := range 8 {
		s := s
		s.Every -= time.Duration(i%2) * time.Hour // their settings differ
		group.Go(func() error { return g.EnsureSchedules(t.Context(), s) })
	}
	require.NoError(t, group.Wait())
	state, err := g.ScheduleState(t.Context(), s.ID)
	require.NoError(t, err)
	require.Contains(t, []time.Duration{s.Every, s.Every - time.Hour}, state.Every)
}

func TestAScheduleIsMadeAsItIsWantedAndStaysPaused(t *testing.T) {
	g := newGCLab(t)
	s := g.scheduled()
	wanted := func() client.Schedule {
		require.NoError(t, g.EnsureSchedules(t.Context(), s))
		d, err := g.temporal.ScheduleClient().GetHandle(t.Context(), s.ID).Describe(t.Context())
		require.NoError(t, err)
		runs := d.Schedule.Action.(*client.ScheduleWorkflowAction)
		require.Equal(t, s.Every, d.Schedule.Spec.Intervals[0].Every)
		require.Equal(t, s.Every/10, d.Schedule.Spec.Jitter)
		require.Equal(t, s.Within, runs.WorkflowExecutionTimeout)
		require.Equal(t, enums.SCHEDULE_OVERLAP_POLICY_SKIP, d.Schedule.Policy.Overlap)
		require.Equal(t, 10*time.Minute, d.Schedule.Policy.CatchupWindow)
		return d.Schedule
	}
	wanted()
	require.NoError(t, g.PauseSchedule(t.Context(), s.ID, "test"))
	s.Every = time.Hour
	require.True(t, wanted().State.Paused, "with another interval")
	s.Within = time.Minute
	require.True(t, wanted().State.Paused, "with another bound")
	err := g.temporal.ScheduleClient().GetHandle(t.Context(), s.ID).Update(t.Context(), client.ScheduleUpdateOptions{
		DoUpdate: func(in client.ScheduleUpdateInput) (*client.ScheduleUpdate, error) {
			in.Description.Schedule.Policy.Overlap = enums.SCHEDULE_OVERLAP_POLICY_ALLOW_ALL
			return &client.ScheduleUpdate{Schedule: &in.Description.Schedule}, nil
		},
	})
	require.NoError(t, err)
	require.Equal(t, "test", wanted().State.Note, "after somebody let runs overlap")
}

// A run by hand must not be given the result of another, which may be a plan.
func TestOneSweepAtATimeIsRunByHandBesideThatOfTheSchedule(t *testing.T) {
	g := newGCLab(t)
	s := g.scheduled()
	require.NoError(t, g.EnsureSchedules(t.Context(), s))
	require.NoError(t, g.temporal.ScheduleClient().GetHandle(t.Context(), s.ID).Trigger(t.Context(),
		client.ScheduleTriggerOptions{}))
	planned := make(chan error, 1)
	var plan gc.Result
	go func() {
		planned <- g.RunSweep(t.Context(), s, gc.Input{Providers: []string{"fake"}, Plan: true}, &plan)
	}()
	require.Eventually(t, func() bool { // there is no worker yet
		_, err := g.temporal.DescribeWorkflow(t.Context(), s.ID+"/by-hand", "")
		return err == nil
	}, soon, tick)
	within, cancel := context.WithTimeout(t.Context(), soon)
	defer cancel()
	require.ErrorIs(t, g.RunSweep(within, s, gc.Input{}, &gc.Result{}), fleet.ErrConflict)
	g.plant("u-"+g.name, "default/nobody", time.Now().Add(-time.Hour))
	g.work()
	require.NoError(t, <-planned)
	require.Len(t, plan.Sweeps[0].Findings, 1)
	require.Eventually(t, func() bool {
		state, err := g.ScheduleState(t.Context(), s.ID)
		require.NoError(t, err)
		return !state.LastSuccess.IsZero()
	}, soon, tick)
}

func TestAnEmptyDatabaseDeletesNoneOfManyInstances(t *testing.T) {
	for _, n := range []int{3, 300} {
		t.Run(fmt.Sprint(n), func(t *testing.T) {
			g := newGCLab(t)
			g.work()
			for i := range n {
				g.plant(fmt.Sprintf("u%d-%s", i, g.name), fmt.Sprintf("default/%s-%d", g.name, i), time.Now().Add(-time.Hour))
			}
			s := g.collect(gc.Input{Force: true})
			require.Zero(t, s.Deleted)
			require.Equal(t, n, s.Doubts)
			require.Equal(t, activities.WhyAdoptable, s.Findings[0].Why)
			require.Len(t, g.backend.Instances(), n)
		})
	}
}

func TestTenThousandInstancesAndAHundredOrphansFitAHistory(t *testing.T) {
	const all, orphans, most = 10_000, 100, 256 << 10
	g := newGCLab(t)
	g.work()
	g.owners.living = map[string]bool{}
	for i := range all {
		uid := fmt.Sprintf("u%d-%s", i, g.name)
		g.plant(uid, fmt.Sprintf("default/%s-%d", g.name, i), time.Now())
		if i >= orphans {
			g.owners.living[uid] = true
		}
	}
	s := g.collect(gc.Input{MinAge: time.Nanosecond})
	require.Equal(t, orphans, s.Deleted)
	require.Len(t, s.Findings, orphans)
	require.Len(t, g.backend.Instances(), all-orphans)
	history := g.temporal.GetWorkflowHistory(t.Context(), g.name+"/by-hand", "", false,
		enums.HISTORY_EVENT_FILTER_TYPE_ALL_EVENT)
	for history.HasNext() {
		event, err := history.Next()
		require.NoError(t, err)
		require.Less(t, proto.Size(event), most, event.GetEventType())
	}
}
