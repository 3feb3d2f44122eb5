package gcefake_test

import (
	"testing"
	"time"

	"cloud.google.com/go/compute/apiv1/computepb"
	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/proto"

	"github.com/egressfleet/egressfleet/testsuite/gcefake"
)

func at(name string) gcefake.Place { return gcefake.Place{Zone: zoneA, Name: name} }

func TestNamesAreTakenUntilTheInstanceIsGone(t *testing.T) {
	t.Parallel()
	l := start(t, slow())
	l.made(t, vm)
	_, err := l.insert(t, wanted(vm))
	require.Equal(t, "alreadyExists", refused(t, err))
	l.clock.Advance(10 * time.Second)
	_, err = l.remove(t, vm)
	require.NoError(t, err)
	l.clock.Advance(29 * time.Second)
	_, err = l.insert(t, wanted(vm))
	require.Equal(t, "alreadyExists", refused(t, err))
	l.clock.Advance(time.Second)
	l.made(t, vm)
}

func TestDeletingAgain(t *testing.T) {
	t.Parallel()
	l := start(t, slow())
	l.made(t, vm)
	l.clock.Advance(10 * time.Second)
	first, err := l.remove(t, vm)
	require.NoError(t, err)
	second, err := l.remove(t, vm)
	require.NoError(t, err)
	require.NotEqual(t, first.Name(), second.Name(), "another operation each time")
	l.clock.Advance(30 * time.Second)
	require.Nil(t, l.operation(t, first.Name()).Error)
	require.Equal(t, "RESOURCE_NOT_FOUND", l.operation(t, second.Name()).GetError().GetErrors()[0].GetCode())
	_, err = l.remove(t, vm)
	require.Equal(t, "notFound", refused(t, err))
}

func TestDeleteStorm(t *testing.T) {
	t.Parallel()
	l := start(t, slow())
	l.DeleteStorm(1, 2)
	l.made(t, vm)
	l.clock.Advance(10 * time.Second)
	_, err := l.remove(t, vm)
	require.NoError(t, err)
	for _, want := range []string{"rateLimitExceeded", "rateLimitExceeded", "notFound", "notFound"} {
		_, err = l.remove(t, vm)
		require.Equal(t, want, refused(t, err))
	}
	require.Equal(t, gcefake.Stopping, l.state(t, vm), "the 404 was not true")
}

func TestDeletingWhatIsBeingMade(t *testing.T) {
	t.Parallel()
	l := start(t, slow())
	insert := l.made(t, vm)
	l.clock.Advance(2 * time.Second)
	_, err := l.remove(t, vm)
	require.NoError(t, err)
	done := l.operation(t, insert.Name())
	require.Equal(t, computepb.Operation_DONE, done.GetStatus())
	require.Equal(t, int32(409), done.GetHttpErrorStatusCode())
	require.Equal(t, gcefake.Stopping, l.state(t, vm))
	l.clock.Advance(30 * time.Second)
	require.Equal(t, "notFound", l.state(t, vm))
	require.Empty(t, l.Disks())
}

func TestADeleteThatFailsLate(t *testing.T) {
	t.Parallel()
	l := start(t, slow())
	l.made(t, vm)
	l.clock.Advance(10 * time.Second)
	l.FailLate(gcefake.Late{Method: "instances.delete", Times: 1, Failure: gcefake.Failed("op-internal", "", "", "")})
	op, err := l.remove(t, vm)
	require.NoError(t, err)
	require.Equal(t, gcefake.Stopping, l.state(t, vm))
	l.clock.Advance(30 * time.Second)
	require.Equal(t, int32(500), l.operation(t, op.Name()).GetHttpErrorStatusCode())
	require.Equal(t, gcefake.Running, l.state(t, vm))
	_, err = l.remove(t, vm)
	require.NoError(t, err)
	l.clock.Advance(30 * time.Second)
	require.Equal(t, "notFound", l.state(t, vm))
}

func TestDeletionProtection(t *testing.T) {
	t.Parallel()
	l := start(t, gcefake.Pace{})
	l.made(t, vm)
	protect := func(on bool) {
		_, err := l.instances.SetDeletionProtection(t.Context(), &computepb.SetDeletionProtectionInstanceRequest{
			Project: project, Zone: zoneA, Resource: vm, DeletionProtection: &on,
		})
		require.NoError(t, err)
	}
	protect(true)
	_, err := l.remove(t, vm)
	require.Equal(t, "invalidResourceUsage", refused(t, err))
	require.Equal(t, gcefake.Running, l.state(t, vm))
	protect(false)
	_, err = l.remove(t, vm)
	require.NoError(t, err)
	require.Equal(t, "notFound", l.state(t, vm))
}

func TestDisksThatAreKept(t *testing.T) {
	t.Parallel()
	l := start(t, gcefake.Pace{})
	msg := wanted(vm)
	msg.Disks[0].AutoDelete = proto.Bool(false)
	msg.Disks[0].InitializeParams.DiskSizeGb = proto.Int64(20)
	_, err := l.insert(t, msg)
	require.NoError(t, err)
	_, err = l.disks.Delete(t.Context(), &computepb.DeleteDiskRequest{Project: project, Zone: zoneA, Disk: vm})
	require.Equal(t, "resourceInUseByAnotherResource", refused(t, err))
	_, err = l.remove(t, vm)
	require.NoError(t, err)
	d, err := l.disks.Get(t.Context(), &computepb.GetDiskRequest{Project: project, Zone: zoneA, Disk: vm})
	require.NoError(t, err)
	require.Equal(t, int64(20), d.GetSizeGb())
	require.Empty(t, d.GetUsers())
	pair, err := l.disks.AggregatedList(t.Context(), &computepb.AggregatedListDisksRequest{
		Project: project, Filter: proto.String("name:proxy"),
	}).Next()
	require.NoError(t, err)
	require.NotNil(t, pair.Value)
	one, err := l.disks.List(t.Context(), &computepb.ListDisksRequest{Project: project, Zone: zoneA}).Next()
	require.NoError(t, err)
	require.Equal(t, vm, one.GetName())
	l.PlantDisk(at("leftover"), &computepb.Disk{Labels: map[string]string{"team": "egress"}})
	_, err = l.disks.Delete(t.Context(), &computepb.DeleteDiskRequest{Project: project, Zone: zoneA, Disk: "leftover"})
	require.NoError(t, err)
	require.Len(t, l.Disks(), 1)
}
