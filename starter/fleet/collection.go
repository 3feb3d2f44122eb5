package fleet

import (
	"context"
	"errors"

	v1 "github.com/egressfleet/egressfleet/api/v1"
	"github.com/egressfleet/egressfleet/workflows/gc"
)

// LastCollection returns what the last collection of orphans that a schedule began came
// to. Where none has ended well it has no providers. Errors: ErrNoSchedule, ErrUnavailable.
func (c *Client) LastCollection(ctx context.Context) (v1.Collection, error) {
	state, err := c.ScheduleState(ctx, gc.Schedule)
	if err != nil {
		return v1.Collection{}, err
	}
	last := v1.Collection{BeganAt: state.LastRun, NextAt: state.NextRun, Paused: state.Paused}
	var r gc.Result
	ended, err := c.LastResult(ctx, gc.Schedule, &r)
	if errors.Is(err, ErrNoRun) {
		return last, nil
	}
	if err != nil {
		return v1.Collection{}, err
	}
	last.EndedAt, last.Providers = ended, collected(r)
	return last, nil
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
