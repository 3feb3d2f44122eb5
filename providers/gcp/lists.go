package gcp

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"

	compute "cloud.google.com/go/compute/apiv1"
	"cloud.google.com/go/compute/apiv1/computepb"
	"google.golang.org/api/iterator"
	"google.golang.org/api/option"
	"google.golang.org/protobuf/proto"
)

// perPage keeps a page small: an instance in a list has its user-data with it, 256 KiB at
// most.
const perPage = 100

// bound are options for a client whose requests belong to ctx, each with a bound of its
// own: a long list is no slow call. Google's iterators make their requests without the
// context that they were given, so that it would neither end them nor be their parent
// in a trace. on are parameters that are set to true, and that the client has no field for.
func (r *rest) bound(ctx context.Context, on ...string) []option.ClientOption {
	return append(slices.Clone(r.options), option.WithHTTPClient(&http.Client{
		Transport: roundTrip(func(request *http.Request) (*http.Response, error) {
			ctx, cancel := r.bounded(ctx)
			request = request.Clone(ctx)
			query := request.URL.Query()
			for _, name := range on {
				query.Set(name, "true")
			}
			request.URL.RawQuery = query.Encode()
			answer, err := r.rounds.RoundTrip(request)
			if err != nil {
				cancel()
				return nil, err
			}
			answer.Body = ending{answer.Body, cancel}
			return answer, nil
		}),
	}))
}

// ending is the body of an answer, whose bound ends with it.
type ending struct {
	io.ReadCloser
	cancel context.CancelFunc
}

// Close ends the bound, too.
func (e ending) Close() error {
	defer e.cancel()
	return e.ReadCloser.Close()
}

// operations asks by the name, which is in the target and nowhere else.
func (r *rest) operations(ctx context.Context, at place) (all []*computepb.Operation, _ error) {
	client, err := compute.NewZoneOperationsRESTClient(ctx, r.bound(ctx)...)
	if err != nil {
		return nil, err
	}
	found := client.List(ctx, &computepb.ListZoneOperationsRequest{
		Project: r.projectID, Zone: at.zone,
		Filter: proto.String(fmt.Sprintf("targetLink : \"/instances/%s\"", at.name)),
	}, once())
	for {
		op, err := found.Next()
		if errors.Is(err, iterator.Done) {
			return all, nil
		}
		if err != nil {
			return nil, clean(ctx, err)
		}
		all = append(all, op)
	}
}

// scoped is one zone's part of a page.
type scoped[T any] struct {
	scope   string
	warning string // a code; "" is none
	items   []T
}

// gather adds what a page says of a scope.
func (l *listing[T]) gather(s scoped[T]) {
	if s.warning != "" && s.warning != noResults {
		l.omit(s.scope)
		return
	}
	l.answered++
	for _, item := range s.items {
		l.found = append(l.found, zoned[T]{strings.TrimPrefix(s.scope, "zones/"), item})
	}
}

// noResults is the warning of a zone that answered and has nothing on the page.
const noResults = "NO_RESULTS_ON_PAGE"

// omit names a scope that was not reached, as IDs begin with it.
func (l *listing[T]) omit(scope string) {
	if i := strings.LastIndex(scope, "zones/"); i >= 0 {
		scope = scope[i:]
	} else if i := strings.LastIndex(scope, "regions/"); i >= 0 {
		scope = scope[i:]
	}
	if !slices.Contains(l.omitted, scope) {
		l.omitted = append(l.omitted, scope)
	}
}

// vouched refuses a list that says nothing: when no zone answers, or more than zones is
// missing, nobody could tell what.
func (l listing[T]) vouched(err error) (listing[T], error) {
	if err != nil {
		return listing[T]{}, err
	}
	for _, scope := range l.omitted {
		if !strings.HasPrefix(scope, "zones/") {
			return listing[T]{}, transient("%s cannot be reached, and it is not a zone", scope)
		}
	}
	if l.answered == 0 && len(l.omitted) > 0 {
		return listing[T]{}, transient("no zone can be reached: %s", strings.Join(l.omitted, ", "))
	}
	slices.Sort(l.omitted)
	l.found = slices.DeleteFunc(l.found, func(z zoned[T]) bool { return slices.Contains(l.omitted, "zones/"+z.zone) })
	return l, nil
}

// follow reads an aggregated list until its end, or until there are most entries. next is
// the iterator of the client, missing what the page that it is at names besides warnings.
func follow[T any](next func() (scoped[T], error), missing func() []string, most int) (l listing[T], _ error) {
	for {
		s, err := next()
		if errors.Is(err, iterator.Done) {
			return l.vouched(nil)
		}
		if err != nil {
			return l.vouched(err)
		}
		l.gather(s)
		for _, scope := range missing() {
			l.omit(scope)
		}
		if most > 0 && len(l.found) >= most {
			return l.vouched(nil)
		}
	}
}

func (r *rest) instances(ctx context.Context, filter string, most int) (listing[*computepb.Instance], error) {
	page := uint32(perPage)
	if most > 0 && most < perPage {
		page = uint32(most)
	}
	client, err := compute.NewInstancesRESTClient(ctx, r.bound(ctx, "returnPartialSuccess")...)
	if err != nil {
		return listing[*computepb.Instance]{}, err
	}
	found := client.AggregatedList(ctx, &computepb.AggregatedListInstancesRequest{
		Project: r.projectID, Filter: &filter, MaxResults: &page,
	}, once())
	all, err := follow(func() (scoped[*computepb.Instance], error) {
		pair, err := found.Next()
		return scoped[*computepb.Instance]{pair.Key, pair.Value.GetWarning().GetCode(), lean(pair.Value.GetInstances())}, err
	}, func() []string {
		answer, _ := found.Response.(*computepb.InstanceAggregatedList)
		return answer.GetUnreachables()
	}, most)
	return all, clean(ctx, err)
}

// lean keeps of the instances of a page what a list is asked for. A fleet of thousands
// would take all of a worker's memory otherwise: the user-data alone may be 256 KiB each.
func lean(page []*computepb.Instance) []*computepb.Instance {
	kept := make([]*computepb.Instance, len(page))
	for n, i := range page {
		marks := slices.DeleteFunc(slices.Clone(i.GetMetadata().GetItems()), func(item *computepb.Items) bool {
			return item.GetKey() == keyUserData
		})
		kept[n] = &computepb.Instance{
			Name: i.Name, Labels: i.GetLabels(), Metadata: &computepb.Metadata{Items: marks},
			Status: i.Status, StatusMessage: i.StatusMessage, CreationTimestamp: i.CreationTimestamp,
			NetworkInterfaces: i.GetNetworkInterfaces(),
			Scheduling:        &computepb.Scheduling{ProvisioningModel: proto.String(i.GetScheduling().GetProvisioningModel())},
		}
	}
	return kept
}

func (r *rest) disks(ctx context.Context, filter string) (listing[*computepb.Disk], error) {
	client, err := compute.NewDisksRESTClient(ctx, r.bound(ctx, "returnPartialSuccess")...)
	if err != nil {
		return listing[*computepb.Disk]{}, err
	}
	found := client.AggregatedList(ctx, &computepb.AggregatedListDisksRequest{
		Project: r.projectID, Filter: &filter,
	}, once())
	all, err := follow(func() (scoped[*computepb.Disk], error) {
		pair, err := found.Next()
		return scoped[*computepb.Disk]{pair.Key, pair.Value.GetWarning().GetCode(), pair.Value.GetDisks()}, err
	}, func() []string {
		answer, _ := found.Response.(*computepb.DiskAggregatedList)
		return answer.GetUnreachables()
	}, 0)
	return all, clean(ctx, err)
}
