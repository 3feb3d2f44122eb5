package gcefake_test

import (
	"strings"
	"testing"
	"time"

	"cloud.google.com/go/compute/apiv1/computepb"
	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/proto"

	"github.com/egressfleet/egressfleet/testsuite/gcefake"
)

func TestLifeOfAnInstance(t *testing.T) {
	t.Parallel()
	l := start(t, gcefake.Pace{
		Pending: time.Second, Running: 9 * time.Second, Provisioning: 4 * time.Second, Staging: 8 * time.Second,
		Address: 3 * time.Second, Stopping: 30 * time.Second, Deprovisioning: 5 * time.Second,
	})
	op := l.made(t, vm)
	require.Equal(t, computepb.Operation_PENDING, op.Proto().GetStatus())
	require.Equal(t, "insert", op.Proto().GetOperationType())
	require.Equal(t, "https://compute.googleapis.com/compute/v1/projects/example-proj/zones/us-central1-a/instances/"+vm,
		op.Proto().GetTargetLink())
	for _, step := range []struct {
		after time.Duration
		op    computepb.Operation_Status
		state string
		nat   bool
	}{
		{0, computepb.Operation_PENDING, gcefake.Provisioning, false},
		{time.Second, computepb.Operation_RUNNING, gcefake.Provisioning, false},
		{3 * time.Second, computepb.Operation_RUNNING, gcefake.Staging, false},
		{6 * time.Second, computepb.Operation_DONE, gcefake.Staging, false},
		{2 * time.Second, computepb.Operation_DONE, gcefake.Running, false},
		{3 * time.Second, computepb.Operation_DONE, gcefake.Running, true},
	} {
		l.clock.Advance(step.after)
		require.Equal(t, step.op, l.operation(t, op.Name()).GetStatus())
		i, err := l.get(t, vm)
		require.NoError(t, err)
		require.Equal(t, step.state, i.GetStatus())
		nic := i.GetNetworkInterfaces()[0]
		require.NotEmpty(t, nic.GetNetworkIP())
		require.Equal(t, step.nat, nic.GetAccessConfigs()[0].GetNatIP() != "")
	}
	removal, err := l.remove(t, vm)
	require.NoError(t, err)
	for _, want := range []string{gcefake.Stopping, gcefake.Deprovisioning} {
		require.Equal(t, want, l.state(t, vm))
		l.clock.Advance(30 * time.Second)
	}
	require.Equal(t, "notFound", l.state(t, vm))
	require.Equal(t, computepb.Operation_DONE, l.operation(t, removal.Name()).GetStatus())
}

func TestTimestampsHaveAnOffset(t *testing.T) {
	t.Parallel()
	l := start(t, gcefake.Pace{})
	op := l.made(t, vm)
	i, err := l.get(t, vm)
	require.NoError(t, err)
	require.Equal(t, "2026-03-14T01:26:53.589-08:00", i.GetCreationTimestamp())
	require.Equal(t, "2026-03-14T01:26:53.589-08:00", op.Proto().GetInsertTime())
}

func TestRefusedInserts(t *testing.T) {
	t.Parallel()
	image := func(source string) func(*computepb.Instance) {
		return func(i *computepb.Instance) { i.Disks[0].InitializeParams.SourceImage = &source }
	}
	for name, c := range map[string]struct {
		change func(*computepb.Instance)
		want   string
	}{
		"a name against the rule": {func(i *computepb.Instance) { i.Name = proto.String("Proxy") }, "invalid"},
		"a machine type that the zone has not": {
			func(i *computepb.Instance) { i.MachineType = proto.String("zones/" + zoneA + "/machineTypes/f1-micro") }, "invalid",
		},
		"a machine type of another zone": {
			func(i *computepb.Instance) { i.MachineType = proto.String("zones/" + zoneB + "/machineTypes/e2-small") }, "invalid",
		},
		"a family that is not there": {image("projects/debian-cloud/global/images/family/debian-10"), "notFound"},
		"an image that is not there": {image("projects/debian-cloud/global/images/debian-12"), "notFound"},
		"an image without a place":   {image("debian-12"), "invalid"},
		"no disk":                    {func(i *computepb.Instance) { i.Disks = nil }, "invalid"},
		"no network interface":       {func(i *computepb.Instance) { i.NetworkInterfaces = nil }, "invalid"},
		"a network that is not there": {func(i *computepb.Instance) {
			i.NetworkInterfaces[0].Network = proto.String("global/networks/x")
		}, "notFound"},
		"a subnetwork of elsewhere": {func(i *computepb.Instance) {
			i.NetworkInterfaces[0].Subnetwork = proto.String("regions/europe-west1/subnetworks/x")
		}, "invalid"},
		"a disk smaller than its image": {func(i *computepb.Instance) {
			i.Disks[0].InitializeParams.DiskSizeGb = proto.Int64(9)
		}, "invalid"},
		"a disk type that is none": {func(i *computepb.Instance) {
			i.Disks[0].InitializeParams.DiskType = proto.String("fast")
		}, "invalid"},
		"a label in capitals":          {func(i *computepb.Instance) { i.Labels["Team"] = "x" }, "invalid"},
		"a label's value with a slash": {func(i *computepb.Instance) { i.Labels["team"] = "a/b" }, "invalid"},
		"metadata that is too large": {func(i *computepb.Instance) {
			large := &computepb.Items{Key: proto.String("user-data"), Value: proto.String(strings.Repeat("#", 262_145))}
			i.Metadata = &computepb.Metadata{Items: []*computepb.Items{large}}
		}, "invalid"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l := start(t, gcefake.Pace{})
			msg := wanted(vm)
			c.change(msg)
			_, err := l.insert(t, msg)
			require.Equal(t, c.want, refused(t, err))
			names, _, err := l.all(t, &computepb.AggregatedListInstancesRequest{})
			require.NoError(t, err)
			require.Empty(t, names)
		})
	}
}
