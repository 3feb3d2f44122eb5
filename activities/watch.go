package activities

import (
	"context"
	"hash/fnv"
	"time"

	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/temporal"

	"github.com/egressfleet/egressfleet/providers"
)

// typeUnchanged is the ApplicationError type of a look that saw nothing new. It is
// no class: only the watch's own retry ever sees it.
const typeUnchanged = "Unchanged"

const (
	// blipPause is between the repetitions of a Transient look; it doubles up to
	// longestBlipPause.
	blipPause        = time.Second
	longestBlipPause = 15 * time.Second
)

// Known is the last answer of the backend. A failure leaves what was seen before it.
// Serialised in the workflow's state: add fields, never rename or retype.
type Known struct {
	State        providers.State `json:"state,omitempty"`
	IP           string          `json:"ip,omitempty"`
	EgressIP     string          `json:"egressIP,omitempty"`
	Deleting     bool            `json:"deleting,omitempty"`
	CreateFailed bool            `json:"createFailed,omitempty"`
	Reason       string          `json:"reason,omitempty"` // of one that does not run
	Failure      providers.Class `json:"failure,omitempty"`
}

// KnownOf returns what an instance makes known.
func KnownOf(inst *providers.Instance) Known {
	k := Known{State: inst.State, IP: inst.IP, EgressIP: inst.EgressIP, Deleting: inst.Deleting}
	if inst.State != providers.StateRunning {
		k.Reason = cut(inst.Reason)
	}
	return k
}

// WatchInput says what is watched, what is known, how often to look, and for how
// long before reporting anyway. The poll doubles with every look up to MaxPoll.
type WatchInput struct {
	Ref     InstanceRef   `json:"ref"`
	Known   Known         `json:"known"`
	Poll    time.Duration `json:"poll"`
	MaxPoll time.Duration `json:"maxPoll"`
	Lease   time.Duration `json:"lease"`
	// Outlast is how long one attempt repeats a Transient look before it becomes news:
	// a blip is no condition.
	Outlast time.Duration `json:"outlast"`
	// Fresh says that what is known was seen just now: the first look comes after a
	// poll. An answer that changes at every look would else be asked for without a pause.
	Fresh bool `json:"fresh,omitempty"`
	// Within is how soon the answer is wanted whatever it is, beside the lease; 0: never.
	Within time.Duration `json:"within,omitempty"`
}

// AwaitChange returns the backend's answer once it differs from what is known, or
// fails with a class that was not there before. Until then it fails as unchanged
// and is retried after the poll, which writes no history. After the lease it
// answers whatever it is, so that an idle workflow comes to new code.
func (a *Instances) AwaitChange(ctx context.Context, in WatchInput) (Answer, error) {
	if in.Fresh && activity.GetInfo(ctx).Attempt == 1 {
		return Answer{}, unchanged(in.soon(ctx, in.Poll))
	}
	out, err := a.lookPastBlips(ctx, in)
	if !in.Known.matches(out, err) || leaseOver(ctx, in.Lease) || in.due(ctx) {
		return out, err
	}
	return Answer{}, unchanged(in.soon(ctx, in.pollAt(activity.GetInfo(ctx).Attempt)))
}

// due reports whether an answer is wanted now, whatever it is. Both times are the
// server's: a worker whose clock is ahead would else be asked again and again.
func (in WatchInput) due(ctx context.Context) bool { return in.Within > 0 && waited(ctx) >= in.Within }

// soon shortens a pause that would go beyond Within.
func (in WatchInput) soon(ctx context.Context, pause time.Duration) time.Duration {
	if in.Within <= 0 {
		return pause
	}
	return min(pause, max(in.Within-waited(ctx), time.Second))
}

// waited is how long after the activity was scheduled this attempt began.
func waited(ctx context.Context) time.Duration {
	info := activity.GetInfo(ctx)
	return info.StartedTime.Sub(info.ScheduledTime)
}

func unchanged(again time.Duration) error {
	return temporal.NewApplicationErrorWithOptions("unchanged", typeUnchanged, temporal.ApplicationErrorOptions{
		NextRetryDelay: again, Category: temporal.ApplicationErrorCategoryBenign,
	})
}

// lookPastBlips looks until the answer is no Transient, or that is already known,
// or has lasted too long to be a blip.
func (a *Instances) lookPastBlips(ctx context.Context, in WatchInput) (Answer, error) {
	ctx, stop := beating(ctx)
	defer stop()
	until := time.Now().Add(in.Outlast)
	for pause := blipPause; ; pause = min(2*pause, longestBlipPause) {
		out, err := a.lookOnce(ctx, in.Ref)
		isNews := err != nil && ErrorClass(err) == providers.ErrTransient && in.Known.Failure != providers.ErrTransient
		if !isNews || time.Now().Add(pause).After(until) {
			return out, err
		}
		select {
		case <-time.After(pause):
		case <-ctx.Done():
			return out, err
		case <-activity.GetWorkerStopChannel(ctx):
			return out, err
		}
	}
}

// lookCall bounds one look of a watch, whose attempt holds several.
const lookCall = 25 * time.Second

func (a *Instances) lookOnce(ctx context.Context, ref InstanceRef) (Answer, error) {
	ctx, cancel := context.WithTimeout(ctx, lookCall)
	defer cancel()
	return a.GetInstance(ctx, ref)
}

func (k Known) matches(out Answer, err error) bool {
	switch {
	case err != nil:
		return ErrorClass(err) == k.Failure
	case out.CreateFailed != nil:
		return k.CreateFailed
	case out.Instance == nil:
		return false
	default:
		return KnownOf(out.Instance) == k
	}
}

// pollAt returns the pause after an attempt, counted from 1.
func (in WatchInput) pollAt(attempt int32) time.Duration {
	poll := in.Poll
	for ; attempt > 1 && poll < in.MaxPoll; attempt-- {
		poll = min(2*poll, in.MaxPoll)
	}
	return poll
}

// leaseOver counts from when the workflow scheduled the activity, not from the
// attempt. Up to a tenth is added by activity, so that a fleet started at once does
// not come back at once.
func leaseOver(ctx context.Context, lease time.Duration) bool {
	info := activity.GetInfo(ctx)
	h := fnv.New32a()
	_, _ = h.Write([]byte(info.WorkflowExecution.RunID + info.ActivityID))
	jitter := lease / 10 * time.Duration(h.Sum32()%100) / 100
	return time.Since(info.ScheduledTime) >= lease+jitter
}
