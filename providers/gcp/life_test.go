package gcp_test

import (
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/egressfleet/egressfleet/providers"
	"github.com/egressfleet/egressfleet/providers/gcp"
	"github.com/egressfleet/egressfleet/testsuite/gcefake"
)

// Every late failure that was captured is told by Get with its class and Google's words.
func TestLateFailuresAreToldByGet(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]providers.Class{
		"op-stockout": providers.ErrQuotaExceeded, "op-quota": providers.ErrQuotaExceeded,
		"op-rate": providers.ErrQuotaExceeded, "op-ip-space": providers.ErrQuotaExceeded,
		"op-org-policy": providers.ErrPermanent, "op-internal": providers.ErrTransient,
		"op-bad-image": providers.ErrPermanent, "op-permission": providers.ErrPermanent,
	} {
		l := newLab(t)
		failure := gcefake.Failed(name, project, zoneA, "it")
		l.cloud.FailLate(gcefake.Late{Times: 1, Failure: failure})
		id := l.create(request())
		err := l.failedLate(id)
		require.Equal(t, want, providers.ClassOf(err), name)
		require.ErrorContains(t, err, failure.Error.GetErrors()[0].GetCode(), name)
		require.ErrorContains(t, err, failure.Error.GetErrors()[0].GetMessage(), name)
		require.NoError(t, l.Delete(t.Context(), id))
		l.gone(id)
	}
}

// A look that fails while the operation is asked for is no NotFound, and no second
// instance comes of it.
func TestAMissingInstanceWhoseOperationsCannotBeReadIsNotGone(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	id := l.create(request())
	l.machine(id).Vanish()
	for _, answer := range []string{"get-503-backend", "get-403-rateLimit-read", "get-404-html", "op-get-404-expired"} {
		remove := l.cloud.Inject(gcefake.Fault{Method: "zoneOperations.list", Answer: gcefake.Captured(answer)})
		_, err := l.Get(t.Context(), id)
		require.Error(t, err)
		require.NotErrorIs(t, err, providers.ErrNotFound, answer)
		remove()
	}
}

// Gone without an operation: while it is young that is no proof. Gone by one it is.
func TestALossWithoutATraceIsBelievedTwoMinutesAfterTheCreate(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	id := l.create(request())
	l.running(id)
	l.machine(id).Vanish()
	_, err := l.Get(t.Context(), id)
	require.Equal(t, providers.ErrTransient, providers.ClassOf(err))
	gcp.Clock(l.Provider, func() time.Time { return time.Now().Add(2*time.Minute + soon) })
	_, err = l.Get(t.Context(), id)
	require.Equal(t, providers.ErrNotFound, providers.ClassOf(err))

	other := newLab(t)
	id = other.create(request())
	other.running(id)
	require.NoError(t, other.reopen(installation).Delete(t.Context(), id), "somebody deletes it")
	other.gone(id)
}

// An instance whose create has just ended, or whose disk is attached to it, is there.
func TestAFalseNotFoundIsTransient(t *testing.T) {
	t.Parallel()
	for what, later := range map[string]time.Duration{"at once": 0, "an hour after the create": time.Hour} {
		l := newLab(t)
		gcp.Clock(l.Provider, func() time.Time { return time.Now().Add(later) })
		req := request()
		id := l.create(req)
		l.running(id)
		l.machine(id).Hide(40 * step)
		_, err := l.Get(t.Context(), id)
		require.Equal(t, providers.ErrTransient, providers.ClassOf(err), what)
		_, err = l.Create(t.Context(), req)
		require.NotErrorIs(t, err, providers.ErrNotFound, what)
		require.Equal(t, []string{zoneA}, l.zonesSeen(req.Name), what)
		l.running(id)
	}
}

// A delete that meets it is not done until the instance is gone.
func TestADeleteDoesNotBelieveAFalseNotFound(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	gcp.Clock(l.Provider, func() time.Time { return time.Now().Add(time.Hour) })
	id := l.create(request())
	l.running(id)
	l.machine(id).Hide(10 * step)
	require.Equal(t, providers.ErrTransient, providers.ClassOf(l.Delete(t.Context(), id)))
	l.running(id)
	require.NoError(t, l.Delete(t.Context(), id))
	l.gone(id)
}

func TestAPreemptedSpotInstanceIsTerminatedAndSaysWhy(t *testing.T) {
	t.Parallel()
	l := newLab(t, func(cfg *gcp.Config) { cfg.Spot = true })
	req := request()
	id := l.create(req)
	l.running(id)
	l.machine(id).Preempt()
	var found providers.Instance
	require.Eventually(t, func() bool {
		found = l.get(id)
		return found.State == providers.StateTerminated
	}, soon, tick)
	require.Contains(t, found.Reason, "compute.instances.preempted")
	require.False(t, found.Deleting, "nobody has asked for it to be deleted")
	require.Equal(t, id, l.create(req), "the name is taken: it is replaced after its delete, and once")

	l.machine(id).Boot() // it revives before the delete
	l.running(id)
	require.NoError(t, l.Delete(t.Context(), id))
	l.gone(id)
	req.Attempt++
	l.running(l.create(req))
	require.Equal(t, []string{zoneA}, l.zonesSeen(req.Name), "and is not doubled")
}

func TestEveryStateOfTheServer(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	id := l.create(request())
	l.running(id)
	for state, want := range map[string]providers.State{
		gcefake.Pending: providers.StateProvisioning, gcefake.PendingStop: providers.StateStopped,
		gcefake.Suspending: providers.StateStopped, gcefake.Suspended: providers.StateStopped,
		gcefake.Repairing: providers.StateProvisioning, gcefake.Deprovisioning: providers.StateStopped,
		gcefake.Stopped: providers.StateStopped, gcefake.Terminated: providers.StateTerminated,
		gcefake.Stopping: providers.StateStopped, "HIBERNATING_2030": providers.StateStopped,
		gcefake.Running: providers.StateRunning,
	} {
		l.machine(id).State(state)
		require.Equal(t, want, l.get(id).State, state)
	}
	l.machine(id).State(gcefake.Running)
	l.machine(id).Silence(true)
	require.Equal(t, providers.StateProvisioning, l.get(id).State, "without the address that is wanted")
}

// A delete that is sent again and again earns a refusal, and then a NotFound that is none.
func TestADeleteIsSentOnce(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	defer l.cloud.DeleteStorm(1, 1)()
	slow := usualPace()
	slow.Stopping = 300 * step
	l.cloud.SetPace(slow)
	id := l.create(request())
	l.running(id)
	for range 5 {
		require.NoError(t, l.Delete(t.Context(), id))
		found := l.get(id)
		require.True(t, found.Deleting, "so that nobody asks again")
	}
	require.Equal(t, 1, l.cloud.Count("instances.delete"))
	l.gone(id)
}

// Each of these is on its way out by itself.
func TestNothingIsSentWhileAnInstanceLeaves(t *testing.T) {
	t.Parallel()
	for _, state := range []string{gcefake.Stopping, gcefake.Deprovisioning, gcefake.PendingStop} {
		l := newLab(t)
		id := l.create(request())
		l.running(id)
		l.machine(id).State(state)
		require.NoError(t, l.Delete(t.Context(), id))
		require.Zero(t, l.cloud.Count("instances.delete"), state)
		l.machine(id).State(gcefake.Terminated)
		require.NoError(t, l.Delete(t.Context(), id))
		require.Equal(t, 1, l.cloud.Count("instances.delete"), "once it has stopped")
	}
}

// What stops because Google takes it back stays once it has stopped: a delete that was
// not sent was not accepted.
func TestADeleteDuringAPreemptionIsAskedForAgain(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	slow := usualPace()
	slow.Stopping = 100 * step
	id := l.create(request())
	l.running(id)
	l.cloud.SetPace(slow)
	l.machine(id).Preempt()
	err := l.Delete(t.Context(), id)
	require.Equal(t, providers.ErrTransient, providers.ClassOf(err))
	require.ErrorContains(t, err, "STOPPING")
	require.Zero(t, l.cloud.Count("instances.delete"), "one that is sent now may be one of a storm")
	require.Eventually(t, func() bool { return l.Delete(t.Context(), id) == nil }, soon, tick)
	l.gone(id)
	require.Equal(t, 1, l.cloud.Count("instances.delete"))
}

// After a delete that failed, the next one is another, and not answered with the first.
func TestADeleteThatFailsLateIsSentAgain(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	id := l.create(request())
	l.running(id)
	l.cloud.FailLate(gcefake.Late{
		Method: "instances.delete", Times: 1, Failure: gcefake.Failed("op-internal", project, zoneA, at(id).Name),
	})
	require.NoError(t, l.Delete(t.Context(), id))
	require.Eventually(t, func() bool { return l.get(id).State == providers.StateRunning }, soon, tick)
	require.NoError(t, l.Delete(t.Context(), id))
	l.gone(id)
	require.Equal(t, 2, l.cloud.Count("instances.delete"))
}

func TestDeletionProtectionIsAPersonsToEnd(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	id := l.create(request())
	l.machine(id).Protect(true)
	err := l.Delete(t.Context(), id)
	require.Equal(t, providers.ErrPermanent, providers.ClassOf(err))
	require.ErrorContains(t, err, "--no-deletion-protection")
	require.Zero(t, l.cloud.Count("instances.delete"))
	l.machine(id).Protect(false)
	require.NoError(t, l.Delete(t.Context(), id))
}

func TestWhatIsNoFleetsIsNotDeleted(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	for _, id := range l.plant()[:2] {
		err := l.Delete(t.Context(), id)
		require.Equal(t, providers.ErrPermanent, providers.ClassOf(err))
		require.ErrorContains(t, err, providers.MarkManaged)
	}
	require.Zero(t, l.cloud.Count("instances.delete"))
}

// The disk of an instance whose owner switched autoDelete off, or of a create that failed.
func TestADiskThatIsLeftIsRemovedBeforeGetSaysNotFound(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	defer l.cloud.LeaveDisks()()
	req := request()
	id := l.create(req)
	l.running(id)
	require.NoError(t, l.Delete(t.Context(), id))
	var found providers.Instance
	require.Eventually(t, func() bool {
		i, err := l.Get(t.Context(), id)
		if err == nil {
			found = *i
		}
		return err == nil && found.State == providers.StateTerminated && !found.Deleting
	}, soon, tick)
	require.Contains(t, found.Reason, "its disk is left")
	require.Equal(t, req.UID, found.UID, "so that its owner knows it")
	require.NoError(t, l.Delete(t.Context(), id))
	l.gone(id)
	require.Empty(t, l.leftovers(req.UID))
}

func TestZonesThatCannotBeReachedAreLeftOutLoggedAndCounted(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	in, out := request(func(r *providers.CreateRequest) { r.Placement.Zone = zoneB }), request()
	l.create(in)
	l.create(out)
	defer l.cloud.Zone(zoneB).CutOff()()
	var lines strings.Builder
	ctx := providers.WithLogger(t.Context(), slog.New(slog.NewTextHandler(&lines, nil)))
	inventory, err := l.Provider.(providers.Inventorier).Inventory(ctx)
	require.NoError(t, err)
	require.Len(t, inventory.Instances, 1)
	require.Equal(t, out.UID, inventory.Instances[0].UID)
	require.Equal(t, []string{"zones/" + zoneB}, inventory.Omitted)
	require.Contains(t, lines.String(), "omitted=zones/"+zoneB)
	require.Contains(t, lines.String(), "zones=1")
}

func TestAListWithoutAnyZoneIsNoList(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	l.create(request())
	for _, zone := range []string{
		zoneA, zoneB, "us-central1-c", "us-central1-f", "europe-west1-b", "europe-west1-c", "europe-west1-d",
	} {
		defer l.cloud.Zone(zone).CutOff()()
	}
	_, err := l.ListByTag(t.Context())
	require.Equal(t, providers.ErrTransient, providers.ClassOf(err))
}

func TestPagesAreFollowed(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	defer l.cloud.PageSize(2)()
	for range 5 {
		l.create(request(inRegion))
	}
	all, err := l.ListByTag(t.Context())
	require.NoError(t, err)
	require.Len(t, all, 5)
	require.GreaterOrEqual(t, l.cloud.Count("instances.aggregatedList"), 3)
}

// A page that is refused fails the list: half a list reads as loss.
func TestARefusedPageIsNoList(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	defer l.cloud.PageSize(1)()
	l.create(request())
	l.create(request())
	calls := 0
	l.cloud.Inject(gcefake.Fault{
		Method: "instances.aggregatedList", Answer: gcefake.Captured("delete-403-rateLimit"),
		When: func(gcefake.Call) bool { calls++; return calls > 1 },
	})
	all, err := l.ListByTag(t.Context())
	require.Equal(t, providers.ErrQuotaExceeded, providers.ClassOf(err))
	require.Empty(t, all)
}

// A disk that is young may be that of a create under way.
func TestALeftDiskIsListedOnceNoCreateCanBeUnderWay(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	req := request()
	l.orphan(req)
	leftovers := func() []providers.Leftover {
		inventory, err := l.Provider.(providers.Inventorier).Inventory(t.Context())
		require.NoError(t, err)
		return inventory.Leftovers
	}
	require.Len(t, leftovers(), 1)
	require.Equal(t, req.UID, leftovers()[0].UID)
	require.Equal(t, "default/a", leftovers()[0].Owner)
	gcp.Clock(l.Provider, func() time.Time { return time.Now().Add(-55 * time.Minute) }) // five minutes after it was made
	require.Empty(t, leftovers())
}

func TestTheClientRepeatsNothing(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	id := l.create(request())
	before := l.cloud.Count("instances.get")
	l.cloud.Inject(gcefake.Fault{Method: "instances.get", Answer: gcefake.Captured("get-503-backend")})
	_, err := l.Get(t.Context(), id)
	require.Equal(t, providers.ErrTransient, providers.ClassOf(err))
	require.Equal(t, before+1, l.cloud.Count("instances.get"), "the workflow does, and paces it")
}

// Every call ends by itself, also one of an iterator, which takes no context along.
func TestEveryCallHasABoundOfItsOwn(t *testing.T) {
	t.Parallel()
	l := newLab(t, func(cfg *gcp.Config) { cfg.CallTimeout = "50ms" })
	id := "zones/" + zoneA + "/instances/proxy-a"
	defer l.gate.stall()()
	for what, call := range map[string]func() error{
		"get":    func() error { _, err := l.Get(t.Context(), id); return err },
		"create": func() error { _, err := l.Create(t.Context(), request()); return err },
		"delete": func() error { return l.Delete(t.Context(), id) },
		"list":   func() error { _, err := l.ListByTag(t.Context()); return err },
	} {
		err := call()
		require.Equal(t, providers.ErrTransient, providers.ClassOf(err), what)
		require.ErrorContains(t, err, "callTimeout", what)
	}
}

func TestALogLineTellsTheSizeOfUserDataAndNoMore(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	var lines strings.Builder
	every := &slog.HandlerOptions{Level: providers.LevelWire}
	ctx := providers.WithLogger(t.Context(), slog.New(slog.NewTextHandler(&lines, every)))
	_, err := l.Create(ctx, request(func(r *providers.CreateRequest) { r.CloudInit = []byte("s3ntinel!") }))
	require.NoError(t, err)
	require.Contains(t, lines.String(), "cloudInitBytes=9")
	require.NotContains(t, lines.String(), "s3ntinel")
}
