package activities

import (
	"cmp"
	"context"
	"fmt"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/egressfleet/egressfleet/providers"
)

// MinAge is how old an instance has to be before it can be an orphan.
const MinAge = 10 * time.Minute

const (
	// asking is how many owners are asked about at once.
	asking = 8
	// proofKept bounds one text of a report, in bytes.
	proofKept = 200
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
	// Everything tells also of what is kept without a doubt: the young and the living.
	Everything bool `json:"everything,omitempty"`
}

// SweepReport is what one sweep saw, kept and deleted, and why.
type SweepReport struct {
	Provider string   `json:"provider"`
	Listed   int      `json:"listed"`            // of this installation, leftovers included
	Omitted  []string `json:"omitted,omitempty"` // what the listing could not read
	Young    int      `json:"young,omitempty"`
	Living   int      `json:"living,omitempty"`
	Convicts int      `json:"convicts"`
	Deleted  int      `json:"deleted"`
	Doubts   int      `json:"doubts"`
	// Findings are the convicts and the doubts, in this order; Unlisted counts those that
	// are not among them.
	Findings []Finding `json:"findings,omitempty"`
	Unlisted int       `json:"unlisted,omitempty"`
	// Refused says why none of the convicts was deleted.
	Refused string `json:"refused,omitempty"`
}

// Finding is one convict or doubt, or just something that is there.
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
	Error     string    `json:"error,omitempty"` // why it could not be deleted
}

// ProviderNames returns the providers that this worker knows.
func (o *Orphans) ProviderNames(context.Context) ([]string, error) { return o.Names(), nil }

// SweepOrphans lists the backend first, asks about the owners of what may be an
// orphan, and deletes what is proven to be one. An error is one of the listing, or of
// Temporal's list of the living: nothing was deleted then.
func (o *Orphans) SweepOrphans(ctx context.Context, in SweepInput) (SweepReport, error) {
	return call(ctx, o.Instances, in.Provider, func(ctx context.Context, p providers.Provider) (SweepReport, error) {
		ctx, cancel := inTime(ctx)
		defer cancel()
		all, err := listed(ctx, in.Provider, p)
		if err != nil {
			return SweepReport{}, err
		}
		b, err := o.bench(ctx, in)
		if err != nil {
			return SweepReport{}, err
		}
		c := &collection{Orphans: o, in: in, bench: b, provider: p, suspects: suspectsOf(all)}
		c.rule(ctx)
		report := c.report(ctx)
		report.Omitted = someOf(all.Omitted)
		if !in.Plan {
			o.Metrics.collected(report)
		}
		return report, nil
	})
}

// listed bounds a listing: a backend that hangs must not hold up the next sweep of the
// others.
func listed(ctx context.Context, name string, p providers.Provider) (providers.Inventory, error) {
	return bounded(ctx, listWithin, name, func(ctx context.Context) (providers.Inventory, error) {
		return inventory(ctx, p)
	})
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
	return bench{
		installation: o.Instances.Installation, now: time.Now(), birth: birth,
		minAge: cmp.Or(in.MinAge, MinAge), living: living, unproven: in.Unproven,
	}, nil
}

// rule rules about every suspect, in their order.
func (c *collection) rule(ctx context.Context) {
	c.rulings = make([]ruling, len(c.suspects))
	var group errgroup.Group
	group.SetLimit(asking)
	for i, s := range c.suspects {
		r, acquitted := c.bench.acquit(s)
		if acquitted {
			c.rulings[i] = r
			continue
		}
		group.Go(func() error {
			c.rulings[i] = c.ask(ctx, s)
			return nil
		})
	}
	_ = group.Wait()
}

// ask rules about a suspect by what primary storage says about its owner.
func (c *collection) ask(ctx context.Context, s suspect) ruling {
	state, err := c.Owners.Owner(ctx, s.Owner, s.UID)
	if err != nil {
		return ruling{Why: WhyNotAsked, Doubt: true, Proof: cutTo(err.Error(), proofKept)}
	}
	return c.bench.judge(s, state)
}
