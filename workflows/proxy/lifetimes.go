package proxy

import (
	"time"

	"go.temporal.io/sdk/workflow"

	v1 "github.com/egressfleet/egressfleet/api/v1"
)

// What a proxy tells of itself by the worker's metrics handler, which says nothing in a
// replay. The worker makes histograms of them, with the label LabelProvider alone.
const (
	TimeToRunning = "egressfleet_proxy_time_to_running_seconds"
	TimeToGone    = "egressfleet_proxy_time_to_gone_seconds"
	LabelProvider = "provider"
)

// tellTime adds one duration to a figure.
func (e *entity) tellTime(ctx workflow.Context, figure string, took time.Duration) {
	of := map[string]string{LabelProvider: e.state.Spec.Provider}
	workflow.GetMetricsHandler(ctx).WithTags(of).Timer(figure).Record(took)
}

// arrive keeps since when an instance is wanted, over a step from one phase to another,
// and returns how long that was where it is over. One that was seen all the time, or was
// there before its workflow, was not waited for.
func (s *State) arrive(now time.Time, was, then v1.Phase) (took time.Duration, arrived bool) {
	switch then {
	case v1.PhaseRunning:
		took, arrived = now.Sub(s.Wanted), !s.Wanted.IsZero()
		s.Wanted = time.Time{}
	case v1.PhasePending, v1.PhaseProvisioning, v1.PhaseReplacing:
		if s.Wanted.IsZero() && (was == v1.PhaseRunning || was == v1.PhaseBlocked) {
			s.Wanted = now
		}
	case v1.PhaseBlocked, v1.PhaseDeleting:
	}
	return took, arrived
}

// depart tells how long the removal took, where a backend had something to remove and
// all of it is gone. A provider that is not configured is no label.
func (e *entity) depart(ctx workflow.Context) {
	s := e.state
	if asked := s.Seen || !s.AnswerAt.IsZero(); asked && s.Deleting && s.SkipCleanup == "" {
		e.tellTime(ctx, TimeToGone, workflow.Now(ctx).Sub(s.Began))
	}
}
