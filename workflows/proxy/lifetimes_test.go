package proxy

import (
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/client"

	v1 "github.com/egressfleet/egressfleet/api/v1"
	"github.com/egressfleet/egressfleet/providers"
	"github.com/egressfleet/egressfleet/testsuite/fake"
)

// toldTimes keeps the durations that a proxy tells of itself.
type toldTimes struct {
	mu   sync.Mutex
	took map[string][]time.Duration // by "figure provider"
}

func (*toldTimes) Counter(name string) client.MetricsCounter {
	return client.MetricsNopHandler.Counter(name)
}

func (*toldTimes) Gauge(name string) client.MetricsGauge { return client.MetricsNopHandler.Gauge(name) }

func (t *toldTimes) WithTags(tags map[string]string) client.MetricsHandler {
	return toldOf{t, tags[LabelProvider]}
}
func (t *toldTimes) Timer(name string) client.MetricsTimer { return toldOf{t, ""}.Timer(name) }

// toldOf is toldTimes with a label.
type toldOf struct {
	*toldTimes
	provider string
}

func (t toldOf) Timer(name string) client.MetricsTimer {
	if name != TimeToRunning && name != TimeToGone {
		return client.MetricsNopHandler.Timer(name)
	}
	return toldTimer{t, name}
}

type toldTimer struct {
	toldOf
	name string
}

func (t toldTimer) Record(d time.Duration) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.took == nil {
		t.took = map[string][]time.Duration{}
	}
	key := t.name + " " + t.provider
	t.took[key] = append(t.took[key], d.Round(time.Second))
}

func (t *toldTimes) all() map[string][]time.Duration {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.took
}

const toRunning, toGone = TimeToRunning + " fake", TimeToGone + " fake"

func TestALifeTellsHowLongItTook(t *testing.T) {
	sc := newScene(t, fake.WithProvisioning())
	sc.at(time.Minute, func() { sc.backend.Finish(sc.backend.Instances()[0].ID) })
	sc.at(time.Hour, func() {
		unlock := sc.backend.Lock(sc.backend.Instances()[0].ID)
		sc.RegisterDelayedCallback(unlock, 10*time.Minute)
		sc.tell(UpdateDelete, "delete", Why{})
	})
	sc.runs()
	told := sc.times.all()
	require.Len(t, told, 2)
	require.Len(t, told[toRunning], 1)
	require.InDelta(t, time.Minute, told[toRunning][0], float64(20*time.Second))
	require.Len(t, told[toGone], 1)
	require.InDelta(t, 10*time.Minute, told[toGone][0], float64(2*time.Minute))
}

func TestAReplacementIsWaitedForFromItsBeginning(t *testing.T) {
	sc := newScene(t)
	sc.at(time.Hour, func() { sc.tell(UpdateReplace, "again", Why{}) })
	sc.deleteAt(2 * time.Hour)
	sc.runs()
	told := sc.times.all()[toRunning]
	require.Len(t, told, 2, "once for the first instance, and once for the other")
	require.Less(t, told[1], time.Minute)
}

func TestWhatIsNotKnownToBeGoneTellsNoTime(t *testing.T) {
	t.Run("nothing was asked for", func(t *testing.T) {
		sc := newScene(t)
		sc.configured = false
		sc.deleteAt(time.Hour)
		sc.runs()
		require.Empty(t, sc.times.all())
	})
	t.Run("it is left behind", func(t *testing.T) {
		sc := newScene(t)
		sc.at(time.Hour, func() {
			sc.backend.Break(providers.ErrTransient)
			sc.tell(UpdateDelete, "delete", DeleteInput{SkipCleanup: true, Reason: "the zone is gone"})
		})
		sc.ExecuteWorkflow(WorkflowType, Input{Spec: sc.spec})
		require.NoError(t, sc.GetWorkflowError())
		require.NotContains(t, sc.times.all(), toGone)
	})
}

func TestSinceWhenAnInstanceIsWanted(t *testing.T) {
	t.Parallel()
	now := time.Unix(1000, 0)
	before := now.Add(-time.Minute)
	for name, tt := range map[string]struct {
		wanted    time.Time
		was, then v1.Phase
		want      time.Time
		took      time.Duration
	}{
		"the first one comes":           {before, v1.PhaseProvisioning, v1.PhaseRunning, time.Time{}, time.Minute},
		"it still comes":                {before, v1.PhasePending, v1.PhaseProvisioning, before, 0},
		"it goes on running":            {time.Time{}, v1.PhaseRunning, v1.PhaseRunning, time.Time{}, 0},
		"it is lost":                    {time.Time{}, v1.PhaseRunning, v1.PhaseProvisioning, now, 0},
		"it is replaced":                {time.Time{}, v1.PhaseRunning, v1.PhaseReplacing, now, 0},
		"it could not be looked at":     {time.Time{}, v1.PhaseRunning, v1.PhaseBlocked, time.Time{}, 0},
		"it was there all the time":     {time.Time{}, v1.PhaseBlocked, v1.PhaseRunning, time.Time{}, 0},
		"a latched one is made anew":    {time.Time{}, v1.PhaseBlocked, v1.PhaseReplacing, now, 0},
		"one is waited for since then":  {before, v1.PhaseBlocked, v1.PhaseProvisioning, before, 0},
		"it was there before its proxy": {time.Time{}, v1.PhasePending, v1.PhaseRunning, time.Time{}, 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := State{Wanted: tt.wanted}
			took, arrived := s.arrive(now, tt.was, tt.then)
			require.Equal(t, tt.took, took*time.Duration(map[bool]int{true: 1}[arrived]))
			require.Equal(t, tt.took > 0, arrived)
			require.Equal(t, tt.want, s.Wanted)
		})
	}
}
