package gcefake_test

import (
	"testing"
	"time"

	compute "cloud.google.com/go/compute/apiv1"
	"cloud.google.com/go/compute/apiv1/computepb"
	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/proto"

	"github.com/egressfleet/egressfleet/testsuite/gcefake"
)

// slow is a pace at which an operation takes ten seconds.
func slow() gcefake.Pace {
	return gcefake.Pace{Pending: time.Second, Running: 9 * time.Second, Stopping: 30 * time.Second}
}

func TestWhatFailsLate(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		failure string
		code    string
		status  int32
	}{
		"a quota":                 {"op-quota", "QUOTA_EXCEEDED", 403},
		"no capacity in the zone": {"op-stockout", "ZONE_RESOURCE_POOL_EXHAUSTED", 503},
		"no address in the subnet": {
			"op-ip-space", "IP_SPACE_EXHAUSTED_WITH_DETAILS", 503,
		},
		"an image":               {"op-bad-image", "RESOURCE_NOT_FOUND", 404},
		"a permission":           {"op-permission", "PERMISSIONS_ERROR", 403},
		"an organisation policy": {"op-org-policy", "CONDITION_NOT_MET", 412},
		"too many operations":    {"op-rate", "RESOURCE_OPERATION_RATE_EXCEEDED", 403},
		"the server itself":      {"op-internal", "INTERNAL_ERROR", 500},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l := start(t, slow())
			l.FailLate(gcefake.Late{Times: 1, Failure: gcefake.Failed(c.failure, project, zoneA, vm)})
			op := l.made(t, vm)
			require.Equal(t, gcefake.Provisioning, l.state(t, vm), "it is seen until the operation is done")
			l.clock.Advance(9 * time.Second)
			require.Equal(t, gcefake.Provisioning, l.state(t, vm))
			require.Nil(t, l.operation(t, op.Name()).Error)
			l.clock.Advance(time.Second)
			done := l.operation(t, op.Name())
			require.Equal(t, computepb.Operation_DONE, done.GetStatus())
			require.Equal(t, c.code, done.GetError().GetErrors()[0].GetCode())
			require.Equal(t, c.status, done.GetHttpErrorStatusCode())
			require.NotEmpty(t, done.GetHttpErrorMessage())
			require.Equal(t, "notFound", l.state(t, vm))
			require.Empty(t, l.Disks(), "the disk goes with it")
			require.Error(t, op.Wait(t.Context()), "the client's own way of waiting")
			l.made(t, vm) // the name is free, and the trouble is over
		})
	}
}

func TestLateFailureThatLeavesTheDisk(t *testing.T) {
	t.Parallel()
	l := start(t, slow())
	l.LeaveDisks()
	l.Zone(zoneA).Stockout(gcefake.SoldOutLate)
	l.made(t, vm)
	l.clock.Advance(10 * time.Second)
	require.Equal(t, "notFound", l.state(t, vm))
	require.Len(t, l.Disks(), 1)
	require.Empty(t, l.Disks()[0].GetUsers())
	_, err := l.insert(t, wanted(vm))
	require.Equal(t, "alreadyExists", refused(t, err), "the disk has the name")
	require.ErrorContains(t, err, "/disks/"+vm)
	require.Equal(t, "notFound", l.state(t, vm))
	op, err := l.disks.Delete(t.Context(), &computepb.DeleteDiskRequest{Project: project, Zone: zoneA, Disk: vm})
	require.NoError(t, err)
	l.clock.Advance(10 * time.Second)
	require.Equal(t, computepb.Operation_DONE, l.operation(t, op.Name()).GetStatus())
	require.Empty(t, l.Disks())
}

func TestFindingAnOperationAgain(t *testing.T) {
	t.Parallel()
	l := start(t, slow())
	op, other := l.made(t, vm), l.made(t, "proxy-b")
	for name, filter := range map[string]string{
		"by target and type": `(targetLink = "` + op.Proto().GetTargetLink() + `") (operationType = insert)`,
		"by an older filter": `(targetLink eq .*/instances/` + vm + `) (operationType eq insert)`,
		"by its target's ID": `targetId = "` + idOf(op) + `"`,
		"by what it is not":  `operationType = insert AND targetLink != "` + other.Proto().GetTargetLink() + `"`,
		"by its request ID":  `clientOperationId:* OR name = "` + op.Name() + `"`,
	} {
		it := l.ops.List(t.Context(), &computepb.ListZoneOperationsRequest{Project: project, Zone: zoneA, Filter: &filter})
		found, err := it.Next()
		require.NoError(t, err, name)
		require.Equal(t, op.Name(), found.GetName(), name)
		_, err = it.Next()
		require.Error(t, err, name)
	}
	require.Equal(t, op.Name(), l.operation(t, idNumber(op)).GetName(), "an operation has a number, too")
}

func idOf(op *compute.Operation) string     { return text(op.Proto().GetTargetId()) }
func idNumber(op *compute.Operation) string { return text(op.Proto().GetId()) }

func TestFiltersThatAreNone(t *testing.T) {
	t.Parallel()
	l := start(t, gcefake.Pace{})
	for _, filter := range []string{"name", "name >= a", "(name = a", "name = a)", "name eq (", "= a"} {
		it := l.ops.List(t.Context(), &computepb.ListZoneOperationsRequest{Project: project, Zone: zoneA, Filter: &filter})
		_, err := it.Next()
		require.Equal(t, "invalid", refused(t, err), filter)
	}
}

func TestOperationsAreKeptForATime(t *testing.T) {
	t.Parallel()
	l := start(t, gcefake.Pace{Running: time.Second, Retention: time.Hour})
	op := l.made(t, vm)
	l.clock.Advance(time.Second)
	require.Equal(t, computepb.Operation_DONE, l.operation(t, op.Name()).GetStatus())
	l.clock.Advance(time.Hour)
	_, err := l.ops.Get(t.Context(), &computepb.GetZoneOperationRequest{
		Project: project, Zone: zoneA, Operation: op.Name(),
	})
	require.Equal(t, "notFound", refused(t, err))
	require.Equal(t, gcefake.Running, l.state(t, vm))
}

func TestWaitReturnsWhatIs(t *testing.T) {
	t.Parallel()
	l := start(t, slow())
	op := l.made(t, vm)
	got, err := l.ops.Wait(t.Context(), &computepb.WaitZoneOperationRequest{
		Project: project, Zone: zoneA, Operation: op.Name(),
	})
	require.NoError(t, err)
	require.Equal(t, computepb.Operation_PENDING, got.GetStatus())
}

func TestRequestIDs(t *testing.T) {
	t.Parallel()
	const id = "0f8fad5b-d9cb-469f-a165-70867728950e"
	insert := func(l *lab, id, name string) (*compute.Operation, error) {
		return l.instances.Insert(t.Context(), &computepb.InsertInstanceRequest{
			Project: project, Zone: zoneA, InstanceResource: wanted(name), RequestId: &id,
		})
	}
	t.Run("the second of two is the first one's operation", func(t *testing.T) {
		t.Parallel()
		l := start(t, slow())
		first, err := insert(l, id, vm)
		require.NoError(t, err)
		l.clock.Advance(time.Second)
		second, err := insert(l, id, vm)
		require.NoError(t, err)
		require.Equal(t, first.Name(), second.Name())
		require.Equal(t, computepb.Operation_RUNNING, second.Proto().GetStatus())
		require.Equal(t, id, second.Proto().GetClientOperationId())
		require.Len(t, l.Instances(), 1)
	})
	t.Run("one whose operation failed is not tried again", func(t *testing.T) {
		t.Parallel()
		l := start(t, gcefake.Pace{})
		restore := l.Zone(zoneA).Stockout(gcefake.SoldOutLate)
		_, err := insert(l, id, vm)
		require.NoError(t, err)
		restore()
		again, err := insert(l, id, vm)
		require.NoError(t, err)
		require.Equal(t, int32(503), again.Proto().GetHttpErrorStatusCode())
		require.Empty(t, l.Instances())
	})
	t.Run("one that was refused at once is free", func(t *testing.T) {
		t.Parallel()
		l := start(t, gcefake.Pace{})
		restore := l.Zone(zoneA).Stockout(gcefake.SoldOutAtOnce)
		_, err := insert(l, id, vm)
		require.Equal(t, "ZONE_RESOURCE_POOL_EXHAUSTED_WITH_DETAILS", refused(t, err))
		restore()
		_, err = insert(l, id, vm)
		require.NoError(t, err)
		require.Len(t, l.Instances(), 1)
	})
	t.Run("another's is another instance", func(t *testing.T) {
		t.Parallel()
		l := start(t, gcefake.Pace{})
		_, err := insert(l, id, vm)
		require.NoError(t, err)
		_, err = insert(l, "1f8fad5b-d9cb-469f-a165-70867728950e", vm)
		require.Equal(t, "alreadyExists", refused(t, err))
	})
	for name, bad := range map[string]string{
		"not a UUID": "proxy-1", "the zero UUID": "00000000-0000-0000-0000-000000000000",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := insert(start(t, gcefake.Pace{}), bad, vm)
			require.Equal(t, "invalid", refused(t, err))
		})
	}
}

func TestGlobalAndRegionalOperations(t *testing.T) {
	t.Parallel()
	l := start(t, gcefake.Pace{})
	firewalls := client(t, l, compute.NewFirewallsRESTClient)
	op, err := firewalls.Insert(t.Context(), &computepb.InsertFirewallRequest{
		Project: project, FirewallResource: rule("egress"),
	})
	require.NoError(t, err)
	global := client(t, l, compute.NewGlobalOperationsRESTClient)
	got, err := global.Get(t.Context(), &computepb.GetGlobalOperationRequest{Project: project, Operation: op.Name()})
	require.NoError(t, err)
	require.Equal(t, computepb.Operation_DONE, got.GetStatus())
	got, err = global.Wait(t.Context(), &computepb.WaitGlobalOperationRequest{Project: project, Operation: op.Name()})
	require.NoError(t, err)
	require.Equal(t, op.Name(), got.GetName())
	found, err := global.List(t.Context(), &computepb.ListGlobalOperationsRequest{
		Project: project, Filter: proto.String("operationType=insert"),
	}).Next()
	require.NoError(t, err)
	require.Equal(t, op.Name(), found.GetName())
	regional := client(t, l, compute.NewRegionOperationsRESTClient)
	_, err = regional.Get(t.Context(), &computepb.GetRegionOperationRequest{
		Project: project, Region: "us-central1", Operation: op.Name(),
	})
	require.Equal(t, "notFound", refused(t, err), "it is not of the region")
	_, err = regional.Get(t.Context(), &computepb.GetRegionOperationRequest{
		Project: project, Region: "moon", Operation: op.Name(),
	})
	require.Equal(t, "invalid", refused(t, err))
}
