package gcp

import (
	"context"
	"fmt"
	"log/slog"
	"net/http"

	"cloud.google.com/go/compute/apiv1/computepb"

	"github.com/egressfleet/egressfleet/providers"
)

// Delete removes the instance, with which its disk goes, or the disk alone where that is
// what is left. It looks first: a delete that is sent while one runs is answered with a
// refusal, and then with a NotFound that is none.
func (p *Provider) Delete(ctx context.Context, id string) error {
	of := about{op: providers.OpDelete}
	at, err := parseID(id)
	if err != nil {
		return p.fail(ctx, of, id, err)
	}
	if ctx.Err() != nil {
		return p.fail(ctx, of, id, context.Cause(ctx))
	}
	of.path = at.path("instances")
	did, err := p.delete(ctx, at)
	if err != nil {
		return p.fail(ctx, of, id, err)
	}
	p.report(ctx, providers.OpDelete, id, slog.String("did", did))
	p.tidyAfter(ctx, at)
	return nil
}

// What a delete came to, for its line in the log.
const (
	didSend    = "sent"
	didNothing = "nothing: a delete is under way"
	didFind    = "nothing: it is gone"
	didDisk    = "removed the disk that was left"
)

func (p *Provider) delete(ctx context.Context, at place) (did string, _ error) {
	s, err := p.see(ctx, at)
	if err != nil {
		return "", err
	}
	if s.deleting {
		return didNothing, nil
	}
	if s.instance == nil {
		return p.deleteMissing(ctx, s)
	}
	if err := deletable(s.instance); err != nil {
		return "", err
	}
	if !leaving(s.instance) {
		return p.send(ctx, s)
	}
	if s.preempted {
		// It stops, and stays: to say that the delete was accepted would have nobody ask again.
		return "", transient("Google is taking the instance back (compute.instances.preempted), and it is %s: "+
			"it can be deleted once it has stopped", s.instance.GetStatus())
	}
	return didNothing, nil
}

// deletable refuses what nobody should delete by an ID.
func deletable(i *computepb.Instance) error {
	if !managed(i.GetLabels()) {
		return permanent("the instance is not a fleet's: it has no label %s=%s",
			providers.MarkManaged, providers.MarkManagedYes)
	}
	if i.GetDeletionProtection() {
		return permanent("the instance has deletion protection, which a person has switched on: " +
			"gcloud compute instances update NAME --zone ZONE --no-deletion-protection ends it")
	}
	return nil
}

// send asks for the delete. That the instance has gone meanwhile is what was asked for.
func (p *Provider) send(ctx context.Context, s sight) (did string, _ error) {
	err := p.api.remove(ctx, s.at, s.removalID())
	if err != nil && classify(err, about{providers.OpDelete, s.at.path("instances")}) == providers.ErrNotFound {
		return didFind, nil
	}
	return didSend, err
}

// removalID is the same for all deletes of one instance that are sent at once, so that
// they are one; after one that came to nothing it is another.
func (s sight) removalID() string {
	id := s.instance.GetId()
	if id == 0 {
		id = s.insert.GetTargetId()
	}
	return requestID(fmt.Sprintf("delete %d", id), s.at.zone, s.refused)
}

// deleteMissing removes what is left of an instance that a read does not find, and does
// not believe that there is none while its insert is under way.
func (p *Provider) deleteMissing(ctx context.Context, s sight) (did string, _ error) {
	disk, err := p.diskOf(ctx, s.at)
	if err != nil {
		return "", err
	}
	if s.inserting(p.now()) || attached(disk, s.at) {
		did, err := p.send(ctx, s)
		if err == nil && did == didFind {
			err = transient("a read does not find the instance, which is being made or has its disk")
		}
		return did, err
	}
	did = didFind
	if disk != nil && managed(disk.GetLabels()) && len(disk.GetUsers()) == 0 {
		did, err = didDisk, p.dropDisk(ctx, s.at)
	}
	if err == nil && s.failed() != nil {
		p.settled.add(s.insert, p.now())
	}
	return did, err
}

// dropDisk removes a disk without an instance and waits until it is gone: it has the
// name, and its insert would be refused for it.
func (p *Provider) dropDisk(ctx context.Context, at place) error {
	op, err := p.api.removeDisk(ctx, at)
	if err != nil {
		if classify(err, about{providers.OpDelete, at.path("disks")}) == providers.ErrNotFound {
			return nil
		}
		return err
	}
	p.detail(ctx, "removes a disk without an instance", slog.String("disk", at.path("disks")))
	return p.pace.until(ctx, func() (bool, error) {
		now, err := p.api.operation(ctx, at.zone, op.GetName())
		if err != nil {
			return false, err
		}
		if failed := failureOf(now); failed != nil && failed.status != http.StatusNotFound {
			return false, failed
		}
		return now.GetStatus() == computepb.Operation_DONE, nil
	}, "the disk that was left is being removed")
}
