package activities

import (
	"context"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"

	v1 "github.com/egressfleet/egressfleet/api/v1"
	"github.com/egressfleet/egressfleet/providers"
)

// adopting is how many proxies are started at once.
const adopting = 8

// Adoption brings the proxies of instances back that no workflow owns.
type Adoption struct {
	Instances *Instances
	Fleet     Adopters
}

// Adopters is what an adoption asks of the fleet. The worker makes one of its client.
type Adopters interface {
	Owners
	// FromMarks returns the proxy that the marks of an instance tell of, or which mark
	// cannot be read.
	FromMarks(m Marked) (v1.Proxy, error)
	// Adopt starts that proxy. One that is there by now is ErrOwned.
	Adopt(ctx context.Context, m Marked) error
}

// ErrOwned says that an instance to adopt has an owner by now.
var ErrOwned = errors.New("a workflow of that name is there by now")

// Marked is an instance as its marks tell of it.
type Marked struct {
	Provider, ID, UID, Owner, SpecMark string
	// Orphan takes it over also where a workflow of its owner has ended.
	Orphan bool
}

// AdoptInput says which provider's instances are adopted, and how.
type AdoptInput struct {
	Provider string `json:"provider"`
	Plan     bool   `json:"plan,omitempty"` // start nothing
	// Orphans also adopts what orphan collection would delete: the workflow of its owner has
	// ended, or is missing where it should be known.
	Orphans bool `json:"orphans,omitempty"`
	// Contested are the claims that more than one provider lists.
	Contested []string `json:"contested,omitempty"`
}

// AdoptReport is what a listing shows, what was adopted, and why the rest was not.
type AdoptReport struct {
	Provider  string   `json:"provider"`
	Listed    int      `json:"listed"`            // instances of this installation
	Omitted   []string `json:"omitted,omitempty"` // what the listing could not read
	Living    int      `json:"living,omitempty"`  // have their workflow
	Adoptable int      `json:"adoptable"`
	Adopted   int      `json:"adopted"`
	Orphans   int      `json:"orphans,omitempty"` // are orphan collection's business
	Leaving   int      `json:"leaving,omitempty"` // are being deleted at the backend
	// Left are those without an owner that could not be adopted.
	Left int `json:"left,omitempty"`
	// Claims are what was left, what is adopted, and the others, in this order; Unlisted
	// counts those that are not among them.
	Claims   []Claim `json:"claims,omitempty"`
	Unlisted int     `json:"unlisted,omitempty"`
}

// Claim is one instance, and what becomes of it.
type Claim struct {
	ID        string    `json:"id"`
	UID       string    `json:"uid,omitempty"`
	Owner     string    `json:"owner,omitempty"`
	CreatedAt time.Time `json:"createdAt,omitzero"`
	// CloudInit is one of the words below.
	CloudInit string `json:"cloudInit,omitempty"`
	Why       string `json:"why"`
	Proof     string `json:"proof,omitempty"`
	Adopt     bool   `json:"adopt,omitempty"` // it is to be adopted
	Adopted   bool   `json:"adopted,omitempty"`
	Error     string `json:"error,omitempty"` // why it could not be adopted
}

// RollPage is how many claims one roll call returns at most: 220 kB of them, while 256 KiB
// may be in one event of a history.
const RollPage = 20_000

// RollCall returns what the instances of a provider claim, each owner and each UID as a
// few characters that stand for it: a proxy has one instance, so what two providers list
// is contested. They are sorted, and those behind after, RollPage at most: where there are
// so many, more may follow.
func (a *Adoption) RollCall(ctx context.Context, provider, after string) ([]string, error) {
	return call(ctx, a.Instances, provider, func(ctx context.Context, p providers.Provider) ([]string, error) {
		all, err := listed(ctx, provider, p)
		var roll []string
		for _, i := range all.Instances {
			if i.Installation == a.Instances.Installation && !i.Deleting {
				roll = append(roll, claimsOf(i)...)
			}
		}
		return pageOf(roll, after), err
	})
}

// pageOf is the page of a roll behind a claim. It is pure.
func pageOf(roll []string, after string) []string {
	slices.Sort(roll)
	roll = slices.Compact(roll)
	from, found := slices.BinarySearch(roll, after)
	if found {
		from++
	}
	return roll[from:min(len(roll), from+RollPage)]
}

// claimsOf are what an instance claims; empty marks claim nothing.
func claimsOf(i providers.Instance) (claims []string) {
	for _, mark := range [][2]string{{"owner", i.Owner}, {"uid", i.UID}} {
		if mark[1] == "" {
			continue
		}
		const enough = 6 // bytes: of 10,000 instances two that differ are taken for one once in a million times
		sum := sha256.Sum256([]byte(mark[0] + "=" + mark[1]))
		claims = append(claims, base64.RawURLEncoding.EncodeToString(sum[:enough]))
	}
	return claims
}

// AdoptInstances lists the backend first, asks about the owners, and starts a proxy for
// each instance that has none. An error is one of the listing, or of Temporal's list of
// the living: nothing was adopted then. Repeating it adopts nothing twice.
func (a *Adoption) AdoptInstances(ctx context.Context, in AdoptInput) (AdoptReport, error) {
	return call(ctx, a.Instances, in.Provider, func(ctx context.Context, p providers.Provider) (AdoptReport, error) {
		ctx, cancel := inTime(ctx)
		defer cancel()
		all, err := listed(ctx, in.Provider, p)
		if err != nil {
			return AdoptReport{}, err
		}
		o := &Orphans{Instances: a.Instances, Owners: a.Fleet}
		b, err := o.bench(ctx, SweepInput{})
		if err != nil {
			return AdoptReport{}, err
		}
		c := &custody{Adoption: a, in: in, bench: b, instances: all.Instances}
		c.rule(ctx)
		if !in.Plan {
			c.adoptAll(ctx)
		}
		report := c.report()
		report.Omitted = someOf(all.Omitted)
		return report, nil
	})
}

// custody is one adoption on one provider.
type custody struct {
	*Adoption
	in        AdoptInput
	bench     bench
	instances []providers.Instance
	rulings   []custodyRuling // about each of them
}

// rule rules about every instance, in their order.
func (c *custody) rule(ctx context.Context) {
	c.rulings = make([]custodyRuling, len(c.instances))
	claims := rivals(c.instances, c.bench.installation, c.in.Contested)
	var group errgroup.Group
	group.SetLimit(asking)
	for i := range c.instances {
		group.Go(func() error {
			c.rulings[i] = c.ask(ctx, c.instances[i], claims)
			return nil
		})
	}
	_ = group.Wait()
}

// ask rules about an instance, by what primary storage says about its owner where its
// marks do not settle it.
func (c *custody) ask(ctx context.Context, i providers.Instance, claims map[string]int) custodyRuling {
	spec, unread := c.Fleet.FromMarks(c.marked(i))
	seen := evidence{instance: i, unread: unread, rivals: rivalsOf(i, claims)}
	r, settled := c.bench.claim(seen)
	if !settled {
		owner, err := c.Fleet.Owner(ctx, i.Owner, i.UID)
		r = c.bench.custody(seen, owner, err, c.in.Orphans)
	}
	r.cloudInit = cloudInitOf(spec.Spec.CloudInit, unread)
	return r
}

func (c *custody) marked(i providers.Instance) Marked {
	return Marked{
		Provider: c.in.Provider, ID: i.ID, UID: i.UID, Owner: i.Owner, SpecMark: i.SpecMark, Orphan: c.in.Orphans,
	}
}

// adoptAll starts the proxies of those that are to be adopted.
func (c *custody) adoptAll(ctx context.Context) {
	var adopted atomic.Int64
	var group errgroup.Group
	group.SetLimit(adopting)
	for i := range c.rulings {
		if c.rulings[i].fate != fateAdopt {
			continue
		}
		group.Go(func() error {
			c.adopt(ctx, i)
			providers.Progress(ctx, adopted.Add(1), int64(len(c.rulings)), "instances adopted")
			return nil
		})
	}
	_ = group.Wait()
}

// adopt starts one proxy. Somebody else may have been faster: then who was is asked.
func (c *custody) adopt(ctx context.Context, n int) {
	i, r := c.instances[n], &c.rulings[n]
	log := providers.Logger(ctx).With(slog.String("id", i.ID), slog.String("uid", i.UID), slog.String("owner", i.Owner))
	err := ctx.Err()
	if err == nil {
		err = c.Fleet.Adopt(ctx, c.marked(i))
	}
	switch {
	case err == nil:
		r.adopted = true
		log.Info("an instance was adopted")
	case errors.Is(err, ErrOwned):
		owner, asked := c.Fleet.Owner(ctx, i.Owner, i.UID)
		word := r.cloudInit
		*r = c.bench.custody(evidence{instance: i}, owner, asked, false)
		r.cloudInit = word
		log.Info("an instance has an owner by now", slog.String("why", r.why))
	default:
		r.fault = cutTo(fmt.Sprintf("not adopted: %s; asking again is harmless", err), proofKept)
		log.Warn("an instance was not adopted", slog.String("error", r.fault))
	}
}
