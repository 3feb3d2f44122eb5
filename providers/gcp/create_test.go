package gcp_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/egressfleet/egressfleet/providers"
	"github.com/egressfleet/egressfleet/providers/gcp"
	"github.com/egressfleet/egressfleet/testsuite/gcefake"
)

// zonesSeen is where the machines of a name are.
func (l *lab) zonesSeen(name string) (zones []string) {
	for _, i := range l.cloud.Instances() {
		if i.GetName() == name {
			zones = append(zones, i.GetZone()[strings.LastIndex(i.GetZone(), "/")+1:])
		}
	}
	return zones
}

// homeOf is the zone that a name has in the region while all have capacity.
func homeOf(t *testing.T, req providers.CreateRequest) string {
	t.Helper()
	l := newLab(t)
	return at(l.create(req)).Zone
}

func TestARegionIsOneZoneForOneName(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	req := request(inRegion)
	id := l.create(req)
	require.Equal(t, id, l.create(req))
	other := l.reopen(installation)
	again, err := other.Create(t.Context(), req)
	require.NoError(t, err)
	require.Equal(t, id, again)
	require.Equal(t, homeOf(t, req), at(id).Zone)
	require.Equal(t, 1, l.cloud.Count("instances.insert"))
}

func TestAZoneWithoutCapacityLetsTheNextBeTried(t *testing.T) {
	t.Parallel()
	for name, how := range map[string]gcefake.Stockout{
		"late": gcefake.SoldOutLate, "at once": gcefake.SoldOutAtOnce,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			req := request(inRegion)
			home := homeOf(t, req)
			l := newLab(t)
			restore := l.cloud.Zone(home).Stockout(how)
			pace := usualPace()
			pace.Pending, pace.Running = 0, 0 // the zone says so before the machine is seen
			l.cloud.SetPace(pace)
			id := l.create(req)
			require.NotEqual(t, home, at(id).Zone)
			l.running(id)
			require.Equal(t, []string{at(id).Zone}, l.zonesSeen(req.Name))

			restore()
			req.Attempt++
			require.Equal(t, id, l.create(req), "what is there is taken, and the zone that is better now is not tried")
			require.Len(t, l.zonesSeen(req.Name), 1)
		})
	}
}

// A stockout that is told after Create has returned is Get's to tell; the next attempt
// goes elsewhere, also at another worker.
func TestALateStockoutMovesTheNextAttempt(t *testing.T) {
	t.Parallel()
	req := request(inRegion)
	home := homeOf(t, req)
	l := newLab(t)
	defer l.cloud.Zone(home).Stockout(gcefake.SoldOutLate)()
	pace := usualPace()
	pace.Running = 30 * step // longer than Create looks
	l.cloud.SetPace(pace)
	id := l.create(req)
	require.Equal(t, home, at(id).Zone)
	err := l.failedLate(id)
	require.Equal(t, providers.ErrQuotaExceeded, providers.ClassOf(err))
	require.ErrorContains(t, err, "ZONE_RESOURCE_POOL_EXHAUSTED")
	require.NoError(t, l.Delete(t.Context(), id))
	l.gone(id)

	req.Attempt++
	other := l.reopen(installation)
	moved, err := other.Create(t.Context(), req)
	require.NoError(t, err)
	require.NotEqual(t, home, at(moved).Zone)
	require.Equal(t, []string{at(moved).Zone}, l.zonesSeen(req.Name))
}

func (l *lab) failedLate(id string) (err error) {
	l.Helper()
	require.Eventually(l, func() bool {
		_, err = l.Get(l.Context(), id)
		return providers.IsCreateFailed(err)
	}, soon, tick)
	return err
}

// The zone that has no capacity is not asked for every proxy, and is asked again later.
func TestAStockoutIsRememberedForAWhile(t *testing.T) {
	t.Parallel()
	l := newLab(t, func(cfg *gcp.Config) { cfg.Zones, cfg.StockoutMemory = []string{zoneA, zoneB}, "10m" })
	now := time.Now()
	var mu sync.Mutex
	gcp.Clock(l.Provider, func() time.Time { mu.Lock(); defer mu.Unlock(); return now })
	restore := l.cloud.Zone(zoneA).Stockout(gcefake.SoldOutAtOnce)
	refused := func() (n int) {
		for _, c := range l.cloud.Calls() {
			if c.Method == "instances.insert" && c.Status != http.StatusOK {
				n++
			}
		}
		return n
	}
	// The zone that comes first is the name's own choice: names that are the same in every
	// run, of which some begin in either zone.
	anywhere := func(n int) providers.CreateRequest {
		return request(func(r *providers.CreateRequest) {
			r.UID = fmt.Sprintf("0f8fad5b-d9cb-469f-a165-%012d", n)
			r.Name, r.Placement = providers.NameFromUID(r.UID), providers.Placement{}
		})
	}
	for n := range 8 {
		require.Equal(t, zoneB, at(l.create(anywhere(n))).Zone)
	}
	require.Equal(t, 1, refused(), "one create has found it out for all")
	restore()
	mu.Lock()
	now = now.Add(11 * time.Minute)
	mu.Unlock()
	zones := map[string]bool{}
	for n := range 16 {
		zones[at(l.create(anywhere(8+n))).Zone] = true
	}
	require.Len(t, zones, 2, "the zone is tried again")
}

func TestNoZoneHasCapacity(t *testing.T) {
	t.Parallel()
	l := newLab(t, func(cfg *gcp.Config) { cfg.Zones = []string{zoneA, zoneB} })
	defer l.cloud.Zone(zoneA).Stockout(gcefake.SoldOutAtOnce)()
	defer l.cloud.Zone(zoneB).Stockout(gcefake.SoldOutAtOnce)()
	req := request(inRegion)
	_, err := l.Create(t.Context(), req)
	require.Equal(t, providers.ErrQuotaExceeded, providers.ClassOf(err))
	require.ErrorContains(t, err, "does not have enough resources", "Google's own words")
	require.Equal(t, 2, l.cloud.Count("instances.insert"), "each zone is asked once")
	require.Empty(t, l.zonesSeen(req.Name))
}

// The answer to an insert is lost, and reads fail after it: whoever tries again finds
// what was made, in whichever zone, and makes no second one.
func TestALostAnswerMakesNoSecondInstance(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	slow := usualPace()
	slow.GetLag, slow.ListLag = 20*step, 40*step
	l.cloud.SetPace(slow)
	req := request(inRegion)
	l.cloud.Inject(gcefake.Fault{Method: "instances.insert", After: true, Drop: true, Times: 1})
	_, err := l.Create(t.Context(), req)
	require.Equal(t, providers.ErrTransient, providers.ClassOf(err))
	l.cloud.Inject(gcefake.Fault{Method: "zoneOperations.*", Answer: gcefake.Captured("get-503-backend"), Times: 2})
	other := l.reopen(installation)
	for range 2 {
		_, err = other.Create(t.Context(), req)
		require.Equal(t, providers.ErrTransient, providers.ClassOf(err), "it cannot tell, and does not guess")
	}
	id, err := other.Create(t.Context(), req)
	require.NoError(t, err)
	require.Equal(t, []string{at(id).Zone}, l.zonesSeen(req.Name))
	require.Equal(t, 1, l.cloud.Count("instances.insert"))
}

// A second insert with the same request ID is the first one.
func TestARepeatedInsertIsOne(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	req := request()
	remove := l.cloud.Inject(gcefake.Fault{Method: "zoneOperations.list", Answer: jsonAnswer(`{"items": []}`)})
	slow := usualPace()
	slow.GetLag = 200 * step
	l.cloud.SetPace(slow)
	gcp.Hasten(l.Provider, 20*time.Millisecond)
	for range 2 {
		_, err := l.Create(t.Context(), req)
		require.Equal(t, providers.ErrTransient, providers.ClassOf(err), "no read sees it")
	}
	require.Equal(t, 2, l.cloud.Count("instances.insert"), "it has asked again")
	remove()
	gcp.Hasten(l.Provider, soon)
	id := l.create(req)
	require.Equal(t, []string{zoneA}, l.zonesSeen(req.Name))
	l.running(id)
}

func jsonAnswer(body string) gcefake.Answer {
	return gcefake.Answer{Status: http.StatusOK, ContentType: "application/json", Body: []byte(body)}
}

// Two workers that know different things about a region both make an instance; whoever
// comes next removes one, always the same.
func TestDoublesOfOneProxyBecomeOne(t *testing.T) {
	t.Parallel()
	l := newLab(t, func(cfg *gcp.Config) { cfg.Zones = []string{zoneA, zoneB} })
	req := request(inRegion)
	kept := l.create(req)
	twin := zoneB
	if at(kept).Zone == zoneB {
		twin = zoneA
	}
	l.cloud.Plant(gcefake.Place{Zone: twin, Name: req.Name}, gcp.Build(t, l.Provider, req, twin))
	require.Len(t, l.zonesSeen(req.Name), 2)
	for range 3 { // while the other one goes, too
		id, err := l.Create(t.Context(), req)
		if err == nil {
			require.Equal(t, kept, id)
		} else {
			require.Equal(t, providers.ErrTransient, providers.ClassOf(err))
		}
	}
	require.Eventually(t, func() bool { _ = l.get(kept); return len(l.zonesSeen(req.Name)) == 1 }, soon, tick)
	require.Equal(t, at(kept).Zone, l.zonesSeen(req.Name)[0])
	require.False(t, l.get(kept).Deleting)
}

func TestWhatIsInserted(t *testing.T) {
	t.Parallel()
	l := newLab(t, func(cfg *gcp.Config) {
		cfg.Network, cfg.Subnetwork, cfg.NetworkTag = "default", "crawl", "crawlers"
		cfg.DiskSizeGb, cfg.DiskType, cfg.Spot = 20, "pd-ssd", true
		cfg.Labels, cfg.Addressing = map[string]string{"team": "crawl"}, "internal"
	})
	req := request(func(r *providers.CreateRequest) {
		r.CloudInit = []byte("#cloud-config\n")
		r.Labels = map[string]string{"env": "prod", "app.kubernetes.io/name": "X", "team": "mine"}
		r.Placement = providers.Placement{Zone: zoneB, MachineType: "e2-medium", Image: "debian-cloud/family/debian-12"}
	})
	id := l.create(req)
	i := l.machine(id).Message()
	require.Equal(t, zoneB, at(id).Zone)
	require.Contains(t, i.GetMachineType(), "machineTypes/e2-medium")
	require.Equal(t, "prod", i.GetLabels()["env"])
	require.Equal(t, "mine", i.GetLabels()["team"], "the proxy's own comes first")
	require.NotContains(t, i.GetLabels(), "app.kubernetes.io/name", "Compute Engine does not take it")
	require.Equal(t, req.UID, i.GetLabels()[providers.MarkUID])
	require.Equal(t, []string{"crawlers"}, i.GetTags().GetItems())
	require.Equal(t, "SPOT", i.GetScheduling().GetProvisioningModel())
	require.Empty(t, i.GetServiceAccounts(), "none unless one is configured")
	require.Empty(t, i.GetNetworkInterfaces()[0].GetAccessConfigs())
	require.Contains(t, i.GetNetworkInterfaces()[0].GetSubnetwork(), "regions/us-central1/subnetworks/crawl")
	require.True(t, i.GetDisks()[0].GetAutoDelete(), "it goes with the instance")
	require.EqualValues(t, 20, i.GetDisks()[0].GetDiskSizeGb())
	user, _ := l.machine(id).Guest("user-data")
	require.Equal(t, "#cloud-config\n", user)
	found := l.running(id)
	require.Equal(t, i.GetNetworkInterfaces()[0].GetNetworkIP(), found.IP, "the address that is asked for")
	require.Empty(t, found.EgressIP, "a gateway has it, and nobody knows which")
}

func TestAPlacementThatCanNeverBeMetIsRefusedUnasked(t *testing.T) {
	t.Parallel()
	l := newLab(t, func(cfg *gcp.Config) { cfg.Zones = []string{zoneA} })
	for field, placement := range map[string]providers.Placement{
		"placement.zone":        {Zone: "us-central1-f"},
		"placement.region":      {Region: "europe-west1"},
		"placement.machineType": {MachineType: "E2"},
		"placement.image":       {Image: "a b"},
	} {
		_, err := l.Create(t.Context(), request(func(r *providers.CreateRequest) { r.Placement = placement }))
		require.Equal(t, providers.ErrPermanent, providers.ClassOf(err))
		require.ErrorContains(t, err, field)
	}
	require.Empty(t, l.cloud.Calls())
}

// What the API refuses at once, in its words and with its class.
func TestRefusedInserts(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]providers.Class{
		"create-400-machine-type": providers.ErrPermanent, "create-400-subnet-not-ready": providers.ErrTransient,
		"create-403-iam": providers.ErrPermanent, "create-403-quotaExceeded": providers.ErrQuotaExceeded,
		"create-404-image-family": providers.ErrPermanent, "create-412-org-policy": providers.ErrPermanent,
		"create-429-status-only": providers.ErrQuotaExceeded, "get-404-html": providers.ErrPermanent,
	} {
		if name == "get-404-html" {
			want = providers.ErrTransient
		}
		l := newLab(t)
		l.cloud.Inject(gcefake.Fault{Method: "instances.insert", Answer: gcefake.Captured(name)})
		_, err := l.Create(t.Context(), request())
		require.Equal(t, want, providers.ClassOf(err), "%s: %v", name, err)
		require.Equal(t, 1, l.cloud.Count("instances.insert"), "%s: the client repeats nothing", name)
	}
}

func TestAnAnswerThatRepeatsUserDataIsNotShown(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	const secret = "password: s3ntinel-0123456789"
	l.cloud.Inject(gcefake.Fault{Method: "instances.insert", Answer: gcefake.Answer{
		Status: http.StatusBadRequest, ContentType: "application/json",
		Body: fmt.Appendf(nil, `{"error": {"code": 400, "message": "Invalid value for field 'x': '%s'",`+
			` "errors": [{"reason": "invalid", "message": "%s"}]}}`, secret, secret),
	}})
	_, err := l.Create(t.Context(), request(func(r *providers.CreateRequest) {
		r.CloudInit = []byte("#cloud-config\n" + secret + "\n")
	}))
	require.Equal(t, providers.ErrPermanent, providers.ClassOf(err))
	require.NotContains(t, err.Error(), "s3ntinel")
	require.ErrorContains(t, err, "invalid")
}

// A disk of somebody else that has the name is neither taken nor removed.
func TestAForeignDiskIsLeftAlone(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	req := request()
	foreign := req
	foreign.UID = "somebody-else"
	l.orphan(foreign)
	_, err := l.Create(t.Context(), req)
	require.Equal(t, providers.ErrPermanent, providers.ClassOf(err))
	foreignErr, ok := errors.AsType[*providers.ForeignError](err)
	require.True(t, ok)
	require.Equal(t, "somebody-else", foreignErr.Found.UID)
	require.Len(t, l.cloud.Disks(), 1, "it is still there")
}

func TestACallThatIsCalledOffSaysSo(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	cause := errors.New("the worker stops")
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(cause)
	_, err := l.Create(ctx, request())
	require.ErrorIs(t, err, cause)
	require.Empty(t, l.cloud.Calls())
}
