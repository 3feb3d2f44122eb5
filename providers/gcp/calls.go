package gcp

import (
	"context"

	compute "cloud.google.com/go/compute/apiv1"
	"cloud.google.com/go/compute/apiv1/computepb"
	"github.com/googleapis/gax-go/v2"
)

// once makes a call that is not repeated: the client would, and the workflow does.
func once() gax.CallOption { return gax.WithRetry(nil) }

func newRest(ctx context.Context, s settings) (*rest, error) {
	c, err := newClients(ctx, s)
	if err != nil {
		return nil, err
	}
	return &rest{projectID: s.Project, endpoint: s.Endpoint, within: s.callTime, clients: c}, nil
}

func (r *rest) instance(ctx context.Context, at place) (*computepb.Instance, error) {
	return ask(ctx, r, func(ctx context.Context) (*computepb.Instance, error) {
		return r.instanceClient.Get(ctx, &computepb.GetInstanceRequest{
			Project: r.projectID, Zone: at.zone, Instance: at.name,
		}, once())
	})
}

func (r *rest) insert(
	ctx context.Context, zone, requestID string, i *computepb.Instance,
) (*computepb.Operation, error) {
	return started(ask(ctx, r, func(ctx context.Context) (*compute.Operation, error) {
		return r.instanceClient.Insert(ctx, &computepb.InsertInstanceRequest{
			Project: r.projectID, Zone: zone, RequestId: &requestID, InstanceResource: i,
		}, once())
	}))
}

// started is the operation that a call has begun.
func started(op *compute.Operation, err error) (*computepb.Operation, error) {
	if err != nil {
		return nil, err
	}
	return op.Proto(), nil
}

func (r *rest) remove(ctx context.Context, at place, requestID string) error {
	_, err := ask(ctx, r, func(ctx context.Context) (*compute.Operation, error) {
		return r.instanceClient.Delete(ctx, &computepb.DeleteInstanceRequest{
			Project: r.projectID, Zone: at.zone, Instance: at.name, RequestId: &requestID,
		}, once())
	})
	return err
}

func (r *rest) operation(ctx context.Context, zone, name string) (*computepb.Operation, error) {
	return ask(ctx, r, func(ctx context.Context) (*computepb.Operation, error) {
		return r.operationZone.Get(ctx, &computepb.GetZoneOperationRequest{
			Project: r.projectID, Zone: zone, Operation: name,
		}, once())
	})
}

func (r *rest) disk(ctx context.Context, at place) (*computepb.Disk, error) {
	return ask(ctx, r, func(ctx context.Context) (*computepb.Disk, error) {
		return r.diskClient.Get(ctx, &computepb.GetDiskRequest{
			Project: r.projectID, Zone: at.zone, Disk: at.name,
		}, once())
	})
}

func (r *rest) removeDisk(ctx context.Context, at place) (*computepb.Operation, error) {
	return started(ask(ctx, r, func(ctx context.Context) (*compute.Operation, error) {
		return r.diskClient.Delete(ctx, &computepb.DeleteDiskRequest{
			Project: r.projectID, Zone: at.zone, Disk: at.name,
		}, once())
	}))
}

func (r *rest) zone(ctx context.Context, name string) (*computepb.Zone, error) {
	return ask(ctx, r, func(ctx context.Context) (*computepb.Zone, error) {
		return r.zoneClient.Get(ctx, &computepb.GetZoneRequest{Project: r.projectID, Zone: name}, once())
	})
}

func (r *rest) region(ctx context.Context, name string) (*computepb.Region, error) {
	return ask(ctx, r, func(ctx context.Context) (*computepb.Region, error) {
		return r.regionClient.Get(ctx, &computepb.GetRegionRequest{Project: r.projectID, Region: name}, once())
	})
}

func (r *rest) project(ctx context.Context) (*computepb.Project, error) {
	return ask(ctx, r, func(ctx context.Context) (*computepb.Project, error) {
		return r.projectClient.Get(ctx, &computepb.GetProjectRequest{Project: r.projectID}, once())
	})
}

func (r *rest) rule(ctx context.Context, name string) (*computepb.Firewall, error) {
	return ask(ctx, r, func(ctx context.Context) (*computepb.Firewall, error) {
		return r.firewallClient.Get(ctx, &computepb.GetFirewallRequest{Project: r.projectID, Firewall: name}, once())
	})
}

func (r *rest) insertRule(ctx context.Context, rule *computepb.Firewall) error {
	_, err := ask(ctx, r, func(ctx context.Context) (*compute.Operation, error) {
		return r.firewallClient.Insert(ctx, &computepb.InsertFirewallRequest{
			Project: r.projectID, FirewallResource: rule,
		}, once())
	})
	return err
}

func (r *rest) patchRule(ctx context.Context, rule *computepb.Firewall) error {
	_, err := ask(ctx, r, func(ctx context.Context) (*compute.Operation, error) {
		return r.firewallClient.Patch(ctx, &computepb.PatchFirewallRequest{
			Project: r.projectID, Firewall: rule.GetName(), FirewallResource: rule,
		}, once())
	})
	return err
}

func (r *rest) removeRule(ctx context.Context, name string) error {
	_, err := ask(ctx, r, func(ctx context.Context) (*compute.Operation, error) {
		return r.firewallClient.Delete(ctx, &computepb.DeleteFirewallRequest{
			Project: r.projectID, Firewall: name,
		}, once())
	})
	return err
}
