package gcefake_test

import (
	"strconv"
	"testing"
	"time"

	compute "cloud.google.com/go/compute/apiv1"
	"cloud.google.com/go/compute/apiv1/computepb"
	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/proto"

	"github.com/egressfleet/egressfleet/testsuite/gcefake"
)

func text(n uint64) string { return strconv.FormatUint(n, 10) }

func TestEveryStateCanBeSeen(t *testing.T) {
	t.Parallel()
	l := start(t, gcefake.Pace{})
	l.made(t, vm)
	for _, state := range []string{
		gcefake.Pending, gcefake.Provisioning, gcefake.Staging, gcefake.PendingStop, gcefake.Stopping,
		gcefake.Deprovisioning, gcefake.Stopped, gcefake.Terminated, gcefake.Suspending, gcefake.Suspended,
		gcefake.Repairing, "HIBERNATING_2030", gcefake.Running,
	} {
		l.Instance(at(vm)).State(state)
		i, err := l.get(t, vm)
		require.NoError(t, err)
		require.Equal(t, state, i.GetStatus())
		nat := i.GetNetworkInterfaces()[0].GetAccessConfigs()[0].GetNatIP()
		require.Equal(t, state == gcefake.Running, nat != "", state)
	}
}

func TestStopStartSuspendResume(t *testing.T) {
	t.Parallel()
	l := start(t, gcefake.Pace{Stopping: 30 * time.Second, Staging: 10 * time.Second})
	l.made(t, vm)
	l.clock.Advance(10 * time.Second)
	do := map[string]func() (*compute.Operation, error){
		"stop": func() (*compute.Operation, error) {
			return l.instances.Stop(t.Context(), &computepb.StopInstanceRequest{Project: project, Zone: zoneA, Instance: vm})
		},
		"start": func() (*compute.Operation, error) {
			return l.instances.Start(t.Context(), &computepb.StartInstanceRequest{Project: project, Zone: zoneA, Instance: vm})
		},
		"suspend": func() (*compute.Operation, error) {
			return l.instances.Suspend(t.Context(), &computepb.SuspendInstanceRequest{
				Project: project, Zone: zoneA, Instance: vm,
			})
		},
		"resume": func() (*compute.Operation, error) {
			return l.instances.Resume(t.Context(), &computepb.ResumeInstanceRequest{Project: project, Zone: zoneA, Instance: vm})
		},
	}
	for _, step := range []struct{ verb, over, to string }{
		{"stop", gcefake.Stopping, gcefake.Terminated},
		{"start", gcefake.Staging, gcefake.Running},
		{"suspend", gcefake.Suspending, gcefake.Suspended},
		{"resume", gcefake.Staging, gcefake.Running},
	} {
		op, err := do[step.verb]()
		require.NoError(t, err, step.verb)
		require.Equal(t, step.over, l.state(t, vm))
		_, err = do["suspend"]()
		require.Equal(t, "resourceNotReady", refused(t, err))
		l.clock.Advance(30 * time.Second)
		require.Equal(t, step.to, l.state(t, vm))
		require.Equal(t, computepb.Operation_DONE, l.operation(t, op.Name()).GetStatus())
	}
}

func TestLabelsHaveAFingerprint(t *testing.T) {
	t.Parallel()
	l := start(t, gcefake.Pace{})
	l.made(t, vm)
	before, err := l.get(t, vm)
	require.NoError(t, err)
	set := func(known string, labels map[string]string) error {
		_, err := l.instances.SetLabels(t.Context(), &computepb.SetLabelsInstanceRequest{
			Project: project, Zone: zoneA, Instance: vm,
			InstancesSetLabelsRequestResource: &computepb.InstancesSetLabelsRequest{LabelFingerprint: &known, Labels: labels},
		})
		return err
	}
	require.NoError(t, set(before.GetLabelFingerprint(), map[string]string{"a": "b"}))
	require.Equal(t, "conditionNotMet", refused(t, set(before.GetLabelFingerprint(), map[string]string{"c": "d"})))
	now, err := l.get(t, vm)
	require.NoError(t, err)
	require.Equal(t, map[string]string{"a": "b"}, now.GetLabels())
	require.Equal(t, "invalid", refused(t, set(now.GetLabelFingerprint(), map[string]string{"A": "b"})))
}

func TestPreemption(t *testing.T) {
	t.Parallel()
	for name, action := range map[string]string{"it stops": "STOP", "it is deleted": "DELETE"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l := start(t, gcefake.Pace{Stopping: 30 * time.Second})
			msg := wanted(vm)
			msg.Scheduling = &computepb.Scheduling{ProvisioningModel: proto.String("SPOT"), InstanceTerminationAction: &action}
			_, err := l.insert(t, msg)
			require.NoError(t, err)
			require.Equal(t, gcefake.Running, l.state(t, vm))
			l.Instance(at(vm)).Preempt()
			require.Equal(t, gcefake.Stopping, l.state(t, vm))
			op, err := l.ops.List(t.Context(), &computepb.ListZoneOperationsRequest{
				Project: project, Zone: zoneA, Filter: proto.String(`operationType="compute.instances.preempted"`),
			}).Next()
			require.NoError(t, err)
			require.Equal(t, "system", op.GetUser())
			l.clock.Advance(30 * time.Second)
			if action == "DELETE" {
				require.Equal(t, "notFound", l.state(t, vm))
				require.Empty(t, l.Disks())
				return
			}
			require.Equal(t, gcefake.Terminated, l.state(t, vm))
			l.Instance(at(vm)).Boot()
			require.Equal(t, gcefake.Running, l.state(t, vm))
		})
	}
}

func TestHandsOnAnInstance(t *testing.T) {
	t.Parallel()
	l := start(t, gcefake.Pace{})
	msg := wanted(vm)
	data := &computepb.Items{Key: proto.String("user-data"), Value: proto.String("#cloud-config")}
	msg.Metadata = &computepb.Metadata{Items: []*computepb.Items{data}}
	_, err := l.insert(t, msg)
	require.NoError(t, err)
	got, ok := l.Instance(at(vm)).Guest("user-data")
	require.True(t, ok)
	require.Equal(t, "#cloud-config", got)
	l.Instance(at(vm)).Silence(true)
	i, err := l.get(t, vm)
	require.NoError(t, err)
	require.Empty(t, i.GetNetworkInterfaces()[0].GetAccessConfigs()[0].GetNatIP())
	l.Instance(at(vm)).Silence(false)
	l.Instance(at(vm)).PowerOff()
	require.Equal(t, gcefake.Terminated, l.state(t, vm))
	l.Instance(at(vm)).Protect(true)
	_, err = l.remove(t, vm)
	require.Equal(t, "invalidResourceUsage", refused(t, err))
	l.Instance(at(vm)).Vanish()
	require.Equal(t, "notFound", l.state(t, vm))
	require.Panics(t, func() { l.Instance(at(vm)).PowerOff() })
	past := l.History()
	require.Len(t, past, 2)
	require.True(t, past[0].Came)
	require.False(t, past[1].Came)
	require.Equal(t, map[string]string{"team": "egress"}, past[1].Labels)
}
