package fleet

import (
	"context"
	"errors"
	"time"

	"go.temporal.io/sdk/temporal"

	v1 "github.com/egressfleet/egressfleet/api/v1"
	"github.com/egressfleet/egressfleet/workflows/gc"
)

// LastCollection returns what the last collection of orphans that a schedule began came
// to. Where none has ended well or was refused it has no providers. Errors: ErrNoSchedule,
// ErrUnavailable.
func (c *Client) LastCollection(ctx context.Context) (v1.Collection, error) {
	state, err := c.ScheduleState(ctx, gc.Schedule)
	if err != nil {
		return v1.Collection{}, err
	}
	last := v1.Collection{BeganAt: state.LastRun, NextAt: state.NextRun, Paused: state.Paused}
	var r gc.Result
	ended, err := c.LastResult(ctx, gc.Schedule, &r)
	switch {
	case err == nil:
		last.EndedAt, last.Providers = ended, collected(r)
	case !errors.Is(err, ErrNoRun):
		return v1.Collection{}, err
	}
	if !last.BeganAt.After(last.EndedAt) {
		return last, nil
	}
	at, failure, err := c.LastFailure(ctx, gc.Schedule)
	if err != nil || !at.After(last.EndedAt) {
		return last, err
	}
	return failed(last, at, failure), nil
}

// LastFailure returns when the last run that a schedule began and that failed did so, and
// its error; a zero time where none is kept. Errors: ErrUnavailable.
func (c *Client) LastFailure(ctx context.Context, schedule string) (at time.Time, failure, _ error) {
	info, err := c.lastRun(ctx, schedule, endedBadly)
	if info == nil {
		return at, nil, err
	}
	run := c.temporal.GetWorkflow(ctx, info.GetExecution().GetWorkflowId(), info.GetExecution().GetRunId())
	return info.GetCloseTime().AsTime(), run.Get(ctx, nil), nil
}

// failed is a collection whose last run failed, or was refused: its error then holds what
// it saw.
func failed(last v1.Collection, at time.Time, failure error) v1.Collection {
	last.FailedAt, last.Failure = at, "its error could not be read"
	if failure != nil {
		last.Failure = failure.Error()
	}
	app, says := errors.AsType[*temporal.ApplicationError](failure)
	if !says {
		return last
	}
	last.Failure, last.Refused = app.Message(), app.Type() == gc.ErrRefused
	var r gc.Result
	if last.Refused && app.Details(&r) == nil {
		last.Providers = collected(r)
	}
	return last
}

func collected(r gc.Result) (all []v1.Collected) {
	for _, s := range r.Sweeps {
		c := v1.Collected{
			Provider: s.Provider, Listed: s.Listed, Living: s.Living, Young: s.Young,
			Doubts: s.Doubts, Orphans: s.Convicts, Deleted: s.Deleted, Note: s.Refused,
		}
		for _, f := range s.Findings {
			if f.Error != "" {
				c.Failed++
			}
		}
		if s.Fault != nil {
			c.Note = s.Fault.Text
		}
		all = append(all, c)
	}
	return all
}
