package gcp

import (
	"context"
	"log/slog"
	"time"

	"cloud.google.com/go/compute/apiv1/computepb"

	"github.com/egressfleet/egressfleet/providers"
)

// insert submits an instance and looks after it until a read sees it or its operation
// has failed. A zone without capacity is no error here: another one may have some.
func (c *creation) insert(ctx context.Context, at place) error {
	resource, err := c.build(c.req, at.zone)
	if err != nil {
		return err
	}
	if err := c.open(ctx, c.req.Port); err != nil {
		return err
	}
	op, err := c.api.insert(ctx, at.zone, c.wanted(at.zone).requestID, resource)
	switch {
	case err == nil:
		c.detail(ctx, "insert accepted", slog.String("providerID", at.id()), slog.String("operation", op.GetName()))
		return c.await(ctx, at, op)
	case isStockout(err):
		c.full.note(at.zone, c.now())
		c.refused[at.zone], c.why = true, err
		c.detail(ctx, "zone has no capacity", slog.String("zone", at.zone), slog.String("error", err.Error()))
		return nil
	case isTaken(err):
		return c.taken(ctx, at, err)
	}
	return err
}

// await looks until a place is decided: the instance is seen, its operation has failed,
// or something else has happened there. op is the insert of this call, which a listing
// of operations may not have yet.
func (c *creation) await(ctx context.Context, at place, op *computepb.Operation) error {
	return c.pace.until(ctx, func() (bool, error) {
		s, err := c.see(ctx, at)
		if err != nil {
			return false, err
		}
		if s.insert == nil && op != nil {
			s.insert = op
		}
		return c.find(s) != pending, nil
	}, "the insert was accepted, and no read sees the instance yet")
}

// taken finds out what has the name: an instance, which the next look finds, or a disk
// of a life before, which is removed.
func (c *creation) taken(ctx context.Context, at place, refusal error) error {
	s, err := c.see(ctx, at)
	if err != nil {
		return err
	}
	if c.find(s) != free {
		return nil
	}
	disk, err := c.diskOf(ctx, at)
	switch {
	case err != nil:
		return err
	case disk == nil:
		return transient("the name is taken, and no read sees by what: %w", refusal)
	case len(disk.GetUsers()) > 0:
		return transient("the disk of that name is in use: %w", refusal)
	}
	wanted := c.wanted(at.zone).holder
	if found := diskHolder(disk); found != wanted {
		return &fault{providers.ErrPermanent, &providers.ForeignError{Found: found, Wanted: wanted}}
	}
	return c.dropDisk(ctx, at)
}

// until looks again and again, less and less often, until it is done or has lasted too
// long, which is Transient: the caller comes back.
func (p pace) until(ctx context.Context, done func() (bool, error), what string) error {
	ctx, cancel := context.WithTimeoutCause(ctx, p.total, transient("%s", what))
	defer cancel()
	for pause := p.first; ; pause = min(2*pause, p.most) {
		ok, err := done()
		if ok || err != nil {
			return err
		}
		timer := time.NewTimer(pause)
		select {
		case <-timer.C:
		case <-ctx.Done():
			timer.Stop()
			return context.Cause(ctx)
		}
	}
}
