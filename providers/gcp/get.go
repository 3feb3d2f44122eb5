package gcp

import (
	"context"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"time"

	"cloud.google.com/go/compute/apiv1/computepb"

	"github.com/egressfleet/egressfleet/providers"
)

// Get reads the instance. Where a read does not find it, its operations say why: it may
// not be there yet, or its create has failed.
func (p *Provider) Get(ctx context.Context, id string) (*providers.Instance, error) {
	of := about{op: providers.OpGet}
	at, err := parseID(id)
	if err != nil {
		return nil, p.fail(ctx, of, id, err)
	}
	if ctx.Err() != nil {
		return nil, p.fail(ctx, of, id, context.Cause(ctx))
	}
	of.path = at.path("instances")
	i, err := p.api.instance(ctx, at)
	if err != nil && classify(err, of) == providers.ErrNotFound {
		return p.getMissing(ctx, at)
	}
	if err != nil {
		return nil, p.fail(ctx, of, id, err)
	}
	found, err := p.shown(ctx, at, i)
	if err != nil {
		return nil, p.fail(ctx, of, id, err)
	}
	p.report(ctx, providers.OpGet, id, slog.String("state", string(found.State)), slog.String("status", i.GetStatus()))
	return &found, nil
}

// shown adds to an instance that does not run why it does not: deleted, or taken back.
func (p *Provider) shown(ctx context.Context, at place, i *computepb.Instance) (providers.Instance, error) {
	found := view(at, i, p.set.Addressing, false)
	if found.State == providers.StateRunning || found.State == providers.StateProvisioning {
		return found, nil
	}
	ops, err := p.api.operations(ctx, at)
	if err != nil {
		return found, err
	}
	h := tell(at, ops)
	found.Deleting = h.deleting
	if h.preempted {
		found.Reason += "; Google has taken it back (compute.instances.preempted)"
	}
	return found, nil
}

// getMissing answers for an instance that a read does not find.
func (p *Provider) getMissing(ctx context.Context, at place) (*providers.Instance, error) {
	of := about{op: providers.OpGet}
	ops, err := p.api.operations(ctx, at)
	if err != nil {
		return nil, p.fail(ctx, of, at.id(), err)
	}
	h := tell(at, ops)
	op, why := errorOfMissing(h, p.settled.has(h.insert), p.now())
	if f := h.failed(); f != nil && isStockout(f) {
		p.full.note(at.zone, timestamp(h.insert.GetEndTime()))
	}
	of.op = op
	if classify(why, of) != providers.ErrNotFound {
		return nil, p.fail(ctx, of, at.id(), why)
	}
	disk, err := p.diskOf(ctx, at)
	if err != nil {
		return nil, p.fail(ctx, of, at.id(), err)
	}
	if attached(disk, at) {
		return nil, p.fail(ctx, of, at.id(), transient("a read does not find the instance, and its disk is attached to it"))
	}
	if disk != nil && managed(disk.GetLabels()) {
		found := remains(at, disk)
		p.report(ctx, providers.OpGet, at.id(), slog.String("state", string(found.State)), slog.String("left", "disk"))
		return &found, nil
	}
	p.tidyAfter(ctx, at)
	return nil, p.fail(ctx, of, at.id(), why)
}

// managed reports whether labels say that a fleet made the resource.
func managed(labels map[string]string) bool {
	return labels[providers.MarkManaged] == providers.MarkManagedYes
}

// attached reports whether a disk is the instance's own and in use by it: then the
// instance is there, whatever a read says.
func attached(disk *computepb.Disk, at place) bool {
	return slices.ContainsFunc(disk.GetUsers(), func(user string) bool {
		return strings.HasSuffix(user, "/"+at.path("instances"))
	})
}

// diskOf returns the disk that has an instance's name; nil when there is none.
func (p *Provider) diskOf(ctx context.Context, at place) (*computepb.Disk, error) {
	disk, err := p.api.disk(ctx, at)
	if err != nil && classify(err, about{providers.OpGet, at.path("disks")}) == providers.ErrNotFound {
		return nil, nil //nolint:nilnil // no disk is an answer
	}
	return disk, err
}

// settled remembers which inserts were seen to fail and deleted since: there is nothing
// at the backend that a delete could mark. Another worker tells the failure once more,
// which a caller that deletes takes for gone.
type settled struct {
	mu   sync.Mutex
	seen map[string]time.Time // by the name of the operation
}

// settledFor is longer than a create and its delete are apart by far, and much shorter
// than operations are kept.
const settledFor = 24 * time.Hour

func newSettled() *settled { return &settled{seen: map[string]time.Time{}} }

func (s *settled) add(op *computepb.Operation, now time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for name, at := range s.seen {
		if now.Sub(at) > settledFor {
			delete(s.seen, name)
		}
	}
	s.seen[op.GetName()] = now
}

func (s *settled) has(op *computepb.Operation) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	_, ok := s.seen[op.GetName()]
	return ok
}
