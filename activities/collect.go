package activities

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/egressfleet/egressfleet/providers"
)

const (
	// deleting is how many orphans a backend is asked to delete at once.
	deleting = 4
	// deleteWithin bounds one delete: some backends wait until it is done.
	deleteWithin = time.Minute
)

// collection is one sweep of one provider.
type collection struct {
	*Orphans
	in       SweepInput
	bench    bench
	provider providers.Provider
	suspects []suspect
	rulings  []ruling // about each of them
}

// report deletes the convicts, unless it may not, and writes down what was found.
func (c *collection) report(ctx context.Context) SweepReport {
	r := SweepReport{Provider: c.in.Provider}
	r.count(c.rulings)
	if !c.in.Force {
		r.Refused = refusal(c.suspects, c.rulings)
	}
	findings := c.findings()
	if !c.in.Plan && r.Refused == "" {
		r.Deleted = c.deleteAll(ctx, findings)
	}
	budget, found := ReportBudget(), make([]Finding, len(findings))
	for i, f := range findings {
		found[i] = f.Finding
	}
	r.Findings = Take(&budget, found)
	r.Unlisted = len(findings) - len(r.Findings)
	return r
}

func (r *SweepReport) count(rulings []ruling) {
	for _, ruling := range rulings {
		if ruling.Why == whyForeign {
			continue
		}
		r.Listed++
		switch {
		case ruling.Convict:
			r.Convicts++
		case ruling.Doubt:
			r.Doubts++
		case ruling.Why == whyYoung:
			r.Young++
		case ruling.Why == whyListed, ruling.Why == whyRuns:
			r.Living++
		}
	}
}

// found is a finding and what it is about.
type found struct {
	Finding
	suspect suspect
}

// findings are the convicts and then the doubts: what is deleted is told first. With
// everything, what is kept without a doubt comes last.
func (c *collection) findings() (all []found) {
	var doubts, others []found
	for i, ruling := range c.rulings {
		s := c.suspects[i]
		f := found{suspect: s, Finding: Finding{
			ID: s.ID, Kind: s.Kind, UID: s.UID, Owner: s.Owner, CreatedAt: s.CreatedAt,
			Why: ruling.Why, Proof: cutTo(ruling.Proof, proofKept), Convict: ruling.Convict,
		}}
		switch {
		case ruling.Convict:
			all = append(all, f)
		case ruling.Doubt:
			doubts = append(doubts, f)
		case c.in.Everything && ruling.Why != whyForeign:
			others = append(others, f)
		}
	}
	return slices.Concat(all, doubts, others)
}

// deleteAll asks the backend to delete the convicts, and returns of how many it took
// that on.
func (c *collection) deleteAll(ctx context.Context, findings []found) int {
	var deleted atomic.Int64
	var group errgroup.Group
	group.SetLimit(deleting)
	for i := range findings {
		f := &findings[i]
		if !f.Convict {
			break // they come first
		}
		group.Go(func() error {
			c.delete(ctx, f)
			if f.Deleted {
				deleted.Add(1)
			}
			providers.Progress(ctx, deleted.Load(), int64(len(findings)), "orphans deleted")
			return nil
		})
	}
	_ = group.Wait()
	return int(deleted.Load())
}

// delete asks for the owner once more, which may have been started anew meanwhile to
// adopt the instance, and then the backend. What the backend does not take is tried again
// by the next sweep.
func (c *collection) delete(ctx context.Context, f *found) {
	log := providers.Logger(ctx).With(slog.String("id", f.ID), slog.String("uid", f.UID),
		slog.String("owner", f.Owner), slog.String("why", f.Why), slog.String("proof", f.Proof))
	_, err := bounded(ctx, deleteWithin, c.in.Provider, func(ctx context.Context) (struct{}, error) {
		if again := c.ask(ctx, f.suspect); !again.Convict {
			return struct{}{}, fmt.Errorf("kept, asked again before the delete: %s %s", again.Why, again.Proof)
		}
		return struct{}{}, c.provider.Delete(ctx, f.ID)
	})
	if ctx.Err() != nil && err != nil {
		err = errors.Join(errors.New("the sweep ran out of time"), err)
	}
	if err != nil {
		f.Error = cutTo(err.Error(), proofKept)
		log.Warn("an orphan was not deleted", slog.String("error", f.Error))
		return
	}
	f.Deleted = true
	log.Info("an orphan was deleted")
}
