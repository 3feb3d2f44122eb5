package gcefake_test

import (
	"context"
	"errors"
	"net/http"
	"testing"
	"time"

	compute "cloud.google.com/go/compute/apiv1"
	"cloud.google.com/go/compute/apiv1/computepb"
	"github.com/googleapis/gax-go/v2/apierror"
	"github.com/stretchr/testify/require"
	"google.golang.org/api/googleapi"
	"google.golang.org/api/iterator"
	"google.golang.org/api/option"
	"google.golang.org/protobuf/proto"

	"github.com/egressfleet/egressfleet/testsuite/gcefake"
)

const (
	project = gcefake.CapturedProject
	zoneA   = gcefake.CapturedZone
	zoneB   = "us-central1-b"
	vm      = gcefake.CapturedInstance
)

// lab is a server, its clock, and the real clients of what it serves.
type lab struct {
	*gcefake.Server
	clock     *gcefake.Manual
	instances *compute.InstancesClient
	ops       *compute.ZoneOperationsClient
	disks     *compute.DisksClient
}

func start(t *testing.T, pace gcefake.Pace) *lab {
	t.Helper()
	clock := gcefake.NewManual(time.Date(2026, 3, 14, 9, 26, 53, 589e6, time.UTC))
	l := &lab{clock: clock, Server: gcefake.Start(t, gcefake.Options{Clock: clock, Pace: pace})}
	l.instances = client(t, l, compute.NewInstancesRESTClient)
	l.ops = client(t, l, compute.NewZoneOperationsRESTClient)
	l.disks = client(t, l, compute.NewDisksRESTClient)
	// The client would repeat what is answered with 503, for minutes.
	*l.instances.CallOptions = compute.InstancesCallOptions{}
	return l
}

// client makes a real client of the server, without credentials.
func client[C interface{ Close() error }](
	t *testing.T, l *lab, dial func(context.Context, ...option.ClientOption) (C, error), more ...option.ClientOption,
) C {
	t.Helper()
	options := append([]option.ClientOption{option.WithEndpoint(l.URL), option.WithoutAuthentication()}, more...)
	c, err := dial(t.Context(), options...)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, c.Close()) })
	return c
}

// wanted is an instance as an insert describes it.
func wanted(name string) *computepb.Instance {
	return &computepb.Instance{
		Name: &name, MachineType: proto.String("zones/" + zoneA + "/machineTypes/e2-small"),
		Labels: map[string]string{"team": "egress"},
		Disks: []*computepb.AttachedDisk{{
			Boot: proto.Bool(true), AutoDelete: proto.Bool(true),
			InitializeParams: &computepb.AttachedDiskInitializeParams{
				SourceImage: proto.String("projects/debian-cloud/global/images/family/debian-12"),
			},
		}},
		NetworkInterfaces: []*computepb.NetworkInterface{{
			Network:       proto.String("global/networks/default"),
			AccessConfigs: []*computepb.AccessConfig{{Type: proto.String("ONE_TO_ONE_NAT")}},
		}},
	}
}

func (l *lab) insert(t *testing.T, msg *computepb.Instance) (*compute.Operation, error) {
	t.Helper()
	return l.instances.Insert(t.Context(), &computepb.InsertInstanceRequest{
		Project: project, Zone: zoneA, InstanceResource: msg,
	})
}

func (l *lab) made(t *testing.T, name string) *compute.Operation {
	t.Helper()
	op, err := l.insert(t, wanted(name))
	require.NoError(t, err)
	return op
}

func (l *lab) get(t *testing.T, name string) (*computepb.Instance, error) {
	t.Helper()
	return l.instances.Get(t.Context(), &computepb.GetInstanceRequest{Project: project, Zone: zoneA, Instance: name})
}

func (l *lab) state(t *testing.T, name string) string {
	t.Helper()
	i, err := l.get(t, name)
	if err != nil {
		return refused(t, err)
	}
	return i.GetStatus()
}

func (l *lab) remove(t *testing.T, name string) (*compute.Operation, error) {
	t.Helper()
	return l.instances.Delete(t.Context(), &computepb.DeleteInstanceRequest{Project: project, Zone: zoneA, Instance: name})
}

func (l *lab) operation(t *testing.T, name string) *computepb.Operation {
	t.Helper()
	op, err := l.ops.Get(t.Context(), &computepb.GetZoneOperationRequest{Project: project, Zone: zoneA, Operation: name})
	require.NoError(t, err)
	return op
}

// refused returns the reason of an answer as the real client tells it; without one,
// the status alone.
func refused(t *testing.T, err error) string {
	t.Helper()
	require.Error(t, err)
	if api, ok := errors.AsType[*googleapi.Error](err); ok {
		if len(api.Errors) > 0 {
			return api.Errors[0].Reason
		}
		return api.Error()
	}
	_, ok := errors.AsType[*apierror.APIError](err)
	require.False(t, ok, "%v", err)
	return err.Error()
}

// all are the names in an aggregated list, with the zones that were left out.
func (l *lab) all(t *testing.T, req *computepb.AggregatedListInstancesRequest) (names, omitted []string, err error) {
	t.Helper()
	return l.allBy(t, l.instances, req)
}

// some is the same with partial success, which the client's request has no field for.
func (l *lab) some(t *testing.T) (names, omitted []string, err error) {
	t.Helper()
	c, err := compute.NewInstancesRESTClient(t.Context(), option.WithEndpoint(l.URL),
		option.WithHTTPClient(&http.Client{Transport: partial{}}))
	require.NoError(t, err)
	defer func() { require.NoError(t, c.Close()) }()
	return l.allBy(t, c, &computepb.AggregatedListInstancesRequest{})
}

type partial struct{}

func (partial) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	query := r.URL.Query()
	query.Set("returnPartialSuccess", "true")
	r.URL.RawQuery = query.Encode()
	return http.DefaultTransport.RoundTrip(r)
}

func (l *lab) allBy(t *testing.T, c *compute.InstancesClient, req *computepb.AggregatedListInstancesRequest) (
	names, omitted []string, err error,
) {
	t.Helper()
	req.Project = project
	it := c.AggregatedList(t.Context(), req)
	for {
		pair, err := it.Next()
		if errors.Is(err, iterator.Done) {
			return names, omitted, nil
		}
		if err != nil {
			return names, omitted, err
		}
		for _, i := range pair.Value.GetInstances() {
			names = append(names, i.GetName())
		}
		if pair.Value.GetWarning().GetCode() == "UNREACHABLE" {
			omitted = append(omitted, pair.Key)
		}
	}
}
