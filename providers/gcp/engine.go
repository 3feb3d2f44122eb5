package gcp

import (
	"context"
	"time"

	"cloud.google.com/go/compute/apiv1/computepb"
)

// engine is what the provider asks of Compute Engine. Every method makes as many calls as
// there are pages, each bounded by itself, and repeats none: that is the workflow's work.
type engine interface {
	instance(ctx context.Context, at place) (*computepb.Instance, error)
	// insert returns the operation that makes the instance, or made it when the request ID
	// is one that was used before.
	insert(ctx context.Context, zone, requestID string, i *computepb.Instance) (*computepb.Operation, error)
	remove(ctx context.Context, at place, requestID string) error
	// operations are those that are about the instance, in no order. They are kept for a
	// limited time, so that none is no proof of anything.
	operations(ctx context.Context, at place) ([]*computepb.Operation, error)

	disk(ctx context.Context, at place) (*computepb.Disk, error)
	removeDisk(ctx context.Context, at place) (*computepb.Operation, error)
	operation(ctx context.Context, zone, name string) (*computepb.Operation, error)

	// instances and disks list by a filter, zone by zone; most bounds the entries, 0: all.
	instances(ctx context.Context, filter string, most int) (listing[*computepb.Instance], error)
	disks(ctx context.Context, filter string) (listing[*computepb.Disk], error)

	zone(ctx context.Context, name string) (*computepb.Zone, error)
	region(ctx context.Context, name string) (*computepb.Region, error)
	project(ctx context.Context) (*computepb.Project, error)
	// granted returns those of the permissions on the project that the caller has.
	granted(ctx context.Context, permissions []string) ([]string, error)

	rule(ctx context.Context, name string) (*computepb.Firewall, error)
	insertRule(ctx context.Context, rule *computepb.Firewall) error
	patchRule(ctx context.Context, rule *computepb.Firewall) error
	removeRule(ctx context.Context, name string) error
	// close ends the connections. No call is under way.
	close()
}

// listing is one list over all zones.
type listing[T any] struct {
	found    []zoned[T]
	answered int      // scopes that were answered for
	omitted  []string // scopes that were not, such as zones/us-central1-f
}

type zoned[T any] struct {
	zone string
	item T
}

// rest is Compute Engine through Google's client. What it keeps is closed by close.
type rest struct {
	projectID string
	endpoint  string        // "" is Google's
	within    time.Duration // each call
	clients
}

// bounded gives a call a bound of its own.
func (r *rest) bounded(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeoutCause(ctx, r.within, errSlow)
}

// ask makes one call within its bound. What its error may repeat of the request or of
// another server's page is taken out of it.
func ask[T any](ctx context.Context, r *rest, call func(context.Context) (T, error)) (T, error) {
	ctx, cancel := r.bounded(ctx)
	defer cancel()
	got, err := call(ctx)
	if err != nil {
		return got, clean(ctx, err)
	}
	return got, nil
}
