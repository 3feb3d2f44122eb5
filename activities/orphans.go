package activities

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/egressfleet/egressfleet/providers"
)

// MinAge is how old an instance has to be before it can be an orphan.
const MinAge = 10 * time.Minute

const (
	// asking is how many owners are asked about at once.
	asking = 8
	// findingsKept and findingsBytes bound what one report lists; the rest is counted.
	findingsKept  = 500
	findingsBytes = 160 << 10
	proofKept     = 200
	// listWithin bounds one listing of a backend.
	listWithin = 2 * time.Minute
)

// Orphans finds and deletes what no proxy owns any more.
type Orphans struct {
	Instances *Instances
	// Names returns the configured providers.
	Names  func() []string
	Owners Owners
	// Metrics may be nil.
	Metrics *SweepMetrics
}

// SweepInput says which provider to sweep, and how.
type SweepInput struct {
	Provider string        `json:"provider"`
	Plan     bool          `json:"plan,omitempty"`  // delete nothing
	Force    bool          `json:"force,omitempty"` // beyond the cap, too
	Unproven bool          `json:"includeUnproven,omitempty"`
	MinAge   time.Duration `json:"minAge,omitempty"` // MinAge unless set
}

// SweepReport is what one sweep saw, kept and deleted, and why.
type SweepReport struct {
	Provider string   `json:"provider"`
	Listed   int      `json:"listed"`
	Omitted  []string `json:"omitted,omitempty"` // what the listing could not read
	Young    int      `json:"young,omitempty"`
	Living   int      `json:"living,omitempty"`
	Convicts int      `json:"convicts"`
	Deleted  int      `json:"deleted"`
	Doubts   int      `json:"doubts"`
	// Findings are the convicts and the doubts; Unlisted counts those that are not
	// among them.
	Findings []Finding `json:"findings,omitempty"`
	Unlisted int       `json:"unlisted,omitempty"`
	// Refused says why none of the convicts was deleted.
	Refused string `json:"refused,omitempty"`
}

// Finding is one convict or doubt.
type Finding struct {
	ID        string    `json:"id"`
	Kind      string    `json:"kind"`
	UID       string    `json:"uid,omitempty"`
	Owner     string    `json:"owner,omitempty"`
	CreatedAt time.Time `json:"createdAt,omitzero"`
	Why       string    `json:"why"`
	Proof     string    `json:"proof,omitempty"`
	Convict   bool      `json:"convict,omitempty"`
	Deleted   bool      `json:"deleted,omitempty"`
	Error     string    `json:"error,omitempty"` // of the delete
}

// ProviderNames returns the providers that this worker knows.
func (o *Orphans) ProviderNames(context.Context) ([]string, error) { return o.Names(), nil }

// SweepOrphans lists the backend first, asks about the owners of what may be an
// orphan, and deletes what is proven to be one. An error is one of the listing, or of
// Temporal's list of the living: nothing was deleted then.
func (o *Orphans) SweepOrphans(ctx context.Context, in SweepInput) (SweepReport, error) {
	return call(ctx, o.Instances, in.Provider, func(ctx context.Context, p providers.Provider) (SweepReport, error) {
		all, err := listed(ctx, p)
		if err != nil {
			return SweepReport{}, err
		}
		b, err := o.bench(ctx, in)
		if err != nil {
			return SweepReport{}, err
		}
		suspects := suspectsOf(all)
		report := &SweepReport{Provider: in.Provider, Listed: len(suspects), Omitted: all.Omitted}
		rulings := o.rule(ctx, b, suspects)
		for i, r := range rulings {
			if in.Unproven && r.unproven() {
				rulings[i].Convict, rulings[i].Doubt = true, false
			}
		}
		report.count(rulings)
		report.refuse(in)
		report.carryOut(ctx, p, suspects, rulings, in.Plan || report.Refused != "")
		if !in.Plan {
			o.Metrics.collected(*report)
		}
		return *report, nil
	})
}

// listed bounds a listing: a backend that hangs must not hold up the next sweep of the
// others.
func listed(ctx context.Context, p providers.Provider) (providers.Inventory, error) {
	ctx, cancel := context.WithTimeout(ctx, listWithin)
	defer cancel()
	return inventory(ctx, p)
}

// bench gathers what the suspects are judged by, after the listing.
func (o *Orphans) bench(ctx context.Context, in SweepInput) (bench, error) {
	living, err := o.Owners.LivingUIDs(ctx)
	if err != nil {
		return bench{}, fmt.Errorf("listing the living proxies: %w", err)
	}
	birth, err := o.Owners.Birth(ctx)
	if err != nil {
		return bench{}, fmt.Errorf("reading the birth record: %w", err)
	}
	b := bench{installation: o.Instances.Installation, now: time.Now(), birth: birth, minAge: in.MinAge, living: living}
	if b.minAge == 0 {
		b.minAge = MinAge
	}
	return b, nil
}

// rule rules about every suspect, in their order.
func (o *Orphans) rule(ctx context.Context, b bench, suspects []suspect) []ruling {
	out := make([]ruling, len(suspects))
	var group errgroup.Group
	group.SetLimit(asking)
	for i, s := range suspects {
		r, acquitted := b.acquit(s)
		if acquitted {
			out[i] = r
			continue
		}
		group.Go(func() error {
			state, err := o.Owners.Owner(ctx, s.Owner, s.UID)
			if err != nil {
				out[i] = ruling{Why: WhyNotAsked, Doubt: true, Proof: cutTo(err.Error(), proofKept)}
				return nil
			}
			out[i] = b.judge(s, state)
			return nil
		})
	}
	_ = group.Wait()
	return out
}

func (r *SweepReport) count(rulings []ruling) {
	for _, ruling := range rulings {
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

// refuse says so where there are more convicts than can be right.
func (r *SweepReport) refuse(in SweepInput) {
	if limit := capOf(r.Listed); r.Convicts > limit && !in.Force {
		r.Refused = fmt.Sprintf("%d of %d listed would be deleted, and %d is the most for one sweep: that is more likely "+
			"a fault than so many orphans. Look at the findings; `starter gc run --force` deletes them",
			r.Convicts, r.Listed, limit)
	}
}

// carryOut deletes the convicts, unless it may not, and writes the findings down.
func (r *SweepReport) carryOut(
	ctx context.Context, p providers.Provider, suspects []suspect, rulings []ruling, spare bool,
) {
	size := 0
	for i, ruling := range rulings {
		if !ruling.Convict && !ruling.Doubt {
			continue
		}
		s := suspects[i]
		f := Finding{
			ID: s.ID, Kind: s.Kind, UID: s.UID, Owner: s.Owner, CreatedAt: s.CreatedAt,
			Why: ruling.Why, Proof: cutTo(ruling.Proof, proofKept), Convict: ruling.Convict,
		}
		if f.Convict && !spare {
			f.delete(ctx, p)
			if f.Deleted {
				r.Deleted++
			}
			providers.Progress(ctx, int64(r.Deleted), int64(r.Convicts), "orphans deleted")
		}
		size += len(f.ID) + len(f.UID) + len(f.Owner) + len(f.Proof) + len(f.Error) + 150
		if len(r.Findings) >= findingsKept || size > findingsBytes {
			r.Unlisted++
			continue
		}
		r.Findings = append(r.Findings, f)
	}
}

// delete asks the backend; what it does not take is tried again by the next sweep.
func (f *Finding) delete(ctx context.Context, p providers.Provider) {
	log := providers.Logger(ctx).With(slog.String("id", f.ID), slog.String("uid", f.UID),
		slog.String("owner", f.Owner), slog.String("why", f.Why), slog.String("proof", f.Proof))
	if err := p.Delete(ctx, f.ID); err != nil {
		f.Error = cutTo(err.Error(), proofKept)
		log.Warn("an orphan could not be deleted", slog.String("error", f.Error))
		return
	}
	f.Deleted = true
	log.Info("an orphan was deleted")
}
