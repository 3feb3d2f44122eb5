package realserver

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.temporal.io/api/enums/v1"
	"golang.org/x/sync/errgroup"

	"github.com/egressfleet/egressfleet/activities"
	v1 "github.com/egressfleet/egressfleet/api/v1"
	"github.com/egressfleet/egressfleet/internal/codec"
	"github.com/egressfleet/egressfleet/providers"
	"github.com/egressfleet/egressfleet/starter/fleet"
	"github.com/egressfleet/egressfleet/testsuite/fake"
	"github.com/egressfleet/egressfleet/workflows/adoption"
	"github.com/egressfleet/egressfleet/workflows/gc"
	"github.com/egressfleet/egressfleet/workflows/proxy"
)

// sentinel is a cloud-init that nobody may read again.
const sentinel = "#cloud-config\npassword: hunter2\n"

// lose is the loss of Temporal's database: the lab goes on with one that knows nothing,
// and what it had before has no worker any more.
func (g *gcLab) lose(stop func()) {
	g.t.Helper()
	stop()
	g.space = g.newNamespace()
	g.connect(codec.Options{})
	g.Client = fleet.New(g.temporal, g.name, fleet.WithTaskQueue(g.queue), fleet.WithDataConverter(g.keys.DataConverter()))
	g.owners = &asked{Client: g.Client}
	g.hands = g.sweepers()
	require.Eventually(g.t, func() bool { return g.EnsureSearchAttributes(g.t.Context(), g.space) == nil }, soon, tick)
	require.Eventually(g.t, func() bool { // a new namespace is not everywhere at once
		return g.EnsureInstallation(g.t.Context()) == nil
	}, soon, tick)
	g.work()
}

// adopt runs the workflow once and returns its only report.
func (g *gcLab) adopt(in adoption.Input) activities.AdoptReport {
	g.t.Helper()
	r, err := g.adopted("", in)
	require.NoError(g.t, err)
	require.Len(g.t, r.Providers, 1)
	require.Nil(g.t, r.Providers[0].Fault)
	return r.Providers[0].AdoptReport
}

func (g *gcLab) adopted(id string, in adoption.Input) (r adoption.Result, err error) {
	s := fleet.Adoption()
	s.ID = g.name + "-adopt" + id
	if len(in.Providers) == 0 {
		in.Providers = []string{"fake"}
	}
	return r, g.RunSweep(g.t.Context(), s, in, &r)
}

// kinds are the three ways in which a spec has its cloud-init, and its digest.
func kinds() (all [3]v1.CloudInit, digests [3]string) {
	const secret = "token: hunter3"
	return [3]v1.CloudInit{{}, {Inline: sentinel}, {SecretRef: &v1.SecretRef{Name: "squid", Key: "conf"}}},
		[3]string{"", v1.Digest([]byte(sentinel)), v1.Digest([]byte(secret))}
}

// peopled makes instances of so many proxies of a life before, and returns what has to be
// theirs for ever.
func (g *gcLab) peopled(n int) map[string]string {
	g.t.Helper()
	have := map[string]string{}
	inits, digests := kinds()
	for i := range n {
		name := fmt.Sprintf("%s-%d", g.name, i)
		was := v1.ProxySpec{
			Provider: "fake", Port: 3128 + i%2, CloudInit: inits[i%3],
			Placement: v1.Placement{Zone: fmt.Sprintf("zone-%d", i%4)},
		}
		made := providers.Instance{
			ID: fake.ID(providers.NameFromUID(runID(name))), UID: runID(name), Installation: g.installation,
			Owner: "default/" + name, SpecMark: proxy.SpecMark(was, digests[i%3]), State: providers.StateRunning,
			IP: fmt.Sprintf("127.9.%d.%d", i/200, i%200), CreatedAt: time.Now().Add(-time.Hour),
		}
		g.backend.Plant(made)
		have[name] = made.UID + " " + made.ID
	}
	return have
}

// readable gives the workers of a lab the secret that specs refer to.
func (g *gcLab) readable() {
	g.t.Helper()
	g.secrets = g.t.TempDir()
	require.NoError(g.t, os.MkdirAll(filepath.Join(g.secrets, "squid"), 0o700))
	require.NoError(g.t, os.WriteFile(filepath.Join(g.secrets, "squid", "conf"), []byte("token: hunter3"), 0o600))
	g.hands = g.sweepers()
}

// settled waits until so many proxies run, and returns UID and instance of each.
func (g *gcLab) settled(n int) map[string]string {
	g.t.Helper()
	have := map[string]string{}
	require.Eventually(g.t, func() bool {
		all, err := g.List(g.t.Context(), "")
		clear(have)
		for _, p := range all {
			if p.Status.Phase == v1.PhaseRunning && strings.HasPrefix(p.Metadata.Name, g.name) {
				have[p.Metadata.Name] = p.Metadata.UID + " " + p.Status.ProviderID
			}
		}
		return err == nil && len(have) == n
	}, 3*soon, 10*tick)
	return have
}

func TestALostDatabaseIsBroughtBackFromTheMarks(t *testing.T) {
	const n = 300
	g := newGCLab(t)
	g.readable()
	before := g.peopled(n)
	g.work()

	s := g.collect(gc.Input{Force: true})
	require.Zero(t, s.Deleted)
	require.Equal(t, n, s.Doubts)
	require.Equal(t, activities.WhyAdoptable, s.Findings[0].Why)

	plan := g.adopt(adoption.Input{Plan: true})
	require.Equal(t, []int{n, n, 0, 0}, []int{plan.Listed, plan.Adoptable, plan.Adopted, plan.Left})
	require.Equal(t, n, len(plan.Claims)+plan.Unlisted)
	_, err := g.Get(t.Context(), "default", g.name+"-0")
	require.ErrorIs(t, err, fleet.ErrNotFound, "a plan starts nothing")

	// Two people do it at once.
	var both [2]adoption.Result
	var group errgroup.Group
	for i := range both {
		group.Go(func() (err error) {
			both[i], err = g.adopted(fmt.Sprint(i), adoption.Input{})
			return err
		})
	}
	require.NoError(t, group.Wait())
	total := 0
	for _, r := range both {
		total += r.Providers[0].Adopted
		for _, c := range r.Providers[0].Claims {
			require.Empty(t, c.Error)
		}
	}
	require.Equal(t, n, total, "each is adopted once")
	require.Equal(t, before, g.settled(n), "the same instances and UIDs")

	again := g.adopt(adoption.Input{})
	require.Equal(t, []int{n, 0, 0}, []int{again.Living, again.Adoptable, again.Left})
	s = g.collect(gc.Input{Force: true, Unproven: true})
	require.Zero(t, s.Deleted)
	require.Equal(t, n, s.Living)
	require.Zero(t, g.backend.Calls(providers.OpCreate))
	require.Zero(t, g.backend.Calls(providers.OpDelete))
	require.Len(t, g.backend.Instances(), n)

	g.keepsItsInstanceWhenTheSpecIsApplied(before)
	g.goesWithItsInstance(n)
}

// keepsItsInstanceWhenTheSpecIsApplied takes one whose cloud-init was inline.
func (g *gcLab) keepsItsInstanceWhenTheSpecIsApplied(before map[string]string) {
	g.t.Helper()
	name := g.name + "-1"
	p, err := g.Get(g.t.Context(), "default", name)
	require.NoError(g.t, err)
	c, told := p.Status.Condition(v1.ConditionAdopted)
	require.True(g.t, told)
	require.Equal(g.t, v1.ReasonCloudInitUnknown, c.Reason)

	p.Spec.CloudInit.Inline = sentinel
	p, created, err := g.Apply(g.t.Context(), p, fleet.Request{ID: rand.Text()})
	require.NoError(g.t, err)
	require.False(g.t, created)
	_, told = p.Status.Condition(v1.ConditionAdopted)
	require.False(g.t, told, "a person has given the spec")
	require.Eventually(g.t, func() bool {
		p, err := g.Get(g.t.Context(), "default", name)
		return err == nil && p.Status.ObservedGeneration == p.Metadata.Generation
	}, soon, tick)
	require.Equal(g.t, before[name], g.settled(len(before))[name])
}

func (g *gcLab) goesWithItsInstance(n int) {
	g.t.Helper()
	ctx, cancel := context.WithTimeout(g.t.Context(), soon)
	defer cancel()
	_, err := g.Delete(ctx, "default", g.name+"-2", "test", fleet.Request{})
	require.NoError(g.t, err)
	require.NoError(g.t, g.WaitGone(ctx, "default", g.name+"-2"))
	require.Len(g.t, g.backend.Instances(), n-1)
}

// survivor is one proxy whose database was lost and that was adopted.
func survivor(t *testing.T, c v1.CloudInit) *gcLab {
	t.Helper()
	g := newGCLab(t)
	stop := g.work()
	g.apply("apply", v1.ProxySpec{Provider: "fake", Port: 3128, CloudInit: c})
	g.running()
	g.lose(stop)
	require.Equal(t, 1, g.adopt(adoption.Input{}).Adopted)
	g.running()
	return g
}

func TestTheFirstActOfAnAdoptedProxyIsALook(t *testing.T) {
	g := survivor(t, v1.CloudInit{})
	var first string
	for _, ev := range g.history(g.runID()).Events {
		if a := ev.GetActivityTaskScheduledEventAttributes(); a != nil {
			first = a.ActivityType.Name
			break
		}
	}
	require.Equal(t, "GetInstance", first)
	require.Equal(t, 1, g.backend.Calls(providers.OpCreate), "that of the life before")
	g.deleted()
}

func TestAnAdoptedProxyWhoseCloudInitIsNotKnownMakesNoInstance(t *testing.T) {
	g := survivor(t, v1.CloudInit{Inline: sentinel})
	_, err := g.tell("replace", proxy.UpdateReplace)
	require.ErrorContains(t, err, "known by its digest only")
	other := spec
	other.CloudInit = g.get().Spec.CloudInit
	other.Port = 3129
	_, _, err = g.Apply(t.Context(), g.wanted(other), fleet.Request{ID: rand.Text()})
	require.ErrorContains(t, err, "known by its digest only")

	g.backend.Lose(g.get().Status.ProviderID)
	g.signal(proxy.SignalHint, proxy.Hint{})
	require.Eventually(t, func() bool { return g.get().Status.Phase == v1.PhaseBlocked }, soon, tick)
	require.Equal(t, v1.ReasonCloudInitUnknown, g.reason())
	c, _ := g.get().Status.Condition(v1.ConditionProvisioned)
	require.Contains(t, c.Message, "apply the spec again")
	require.Equal(t, 1, g.backend.Calls(providers.OpCreate))

	g.handOver(g.runID())
	require.Equal(t, v1.PhaseBlocked, g.get().Status.Phase, "also in the next run")
	_, err = g.tell("retry", proxy.UpdateRetry)
	require.NoError(t, err)
	g.apply("again", v1.ProxySpec{Provider: "fake", Port: 3128, CloudInit: v1.CloudInit{Inline: sentinel}})
	g.running()
	require.Equal(t, 2, g.backend.Calls(providers.OpCreate), "made once its cloud-init is known, and not before")
	requests := g.backend.Requests()
	require.Equal(t, sentinel, string(requests[len(requests)-1].CloudInit))
	g.deleted()
}

func TestAnAdoptionShowsNoCloudInit(t *testing.T) {
	g := survivor(t, v1.CloudInit{Inline: sentinel})
	for _, id := range []string{g.id(), g.name + "-adopt/by-hand"} {
		it := g.temporal.GetWorkflowHistory(t.Context(), id, "", false, enums.HISTORY_EVENT_FILTER_TYPE_ALL_EVENT)
		var all strings.Builder
		for it.HasNext() {
			ev, err := it.Next()
			require.NoError(t, err)
			all.WriteString(ev.String())
		}
		require.Contains(t, all.String(), g.name)
		require.NotContains(t, all.String(), "hunter2", id)
	}
	raw, err := json.Marshal(g.get())
	require.NoError(t, err)
	require.Contains(t, string(raw), "redacted:sha256:"+v1.Digest([]byte(sentinel)))
}

// runID is a UID as Temporal makes them, the same for one name.
func runID(name string) string {
	sum := v1.Digest([]byte(name))
	return fmt.Sprintf("%s-%s-%s-%s-%s", sum[:8], sum[8:12], sum[12:16], sum[16:20], sum[20:32])
}

func TestWhatIsNotAdopted(t *testing.T) {
	mark := proxy.SpecMark(spec, "")
	hour := time.Now().Add(-time.Hour)
	planted := func(change func(*providers.Instance)) func(*gcLab) {
		return func(g *gcLab) {
			i := providers.Instance{
				ID: fake.ID("x"), UID: runID(g.name), Installation: g.installation, Owner: "default/" + g.name,
				SpecMark: mark, State: providers.StateRunning, IP: "127.9.9.9", CreatedAt: hour,
			}
			change(&i)
			g.backend.Plant(i)
		}
	}
	for name, tc := range map[string]struct {
		arrange func(*gcLab)
		why     string // of the first claim; empty: it is not told of
		left    int
		orphans int // adopted where a person wants those, too
	}{
		"without a UID":         {planted(func(i *providers.Instance) { i.UID = "" }), activities.WhyNoUID, 1, 0},
		"without an owner":      {planted(func(i *providers.Instance) { i.Owner = "" }), activities.WhyNoOwner, 1, 0},
		"an owner that is none": {planted(func(i *providers.Instance) { i.Owner = "x" }), activities.WhyUnreadable, 1, 0},
		"without a spec":        {planted(func(i *providers.Instance) { i.SpecMark = "" }), activities.WhyUnreadable, 1, 0},
		"being deleted": {
			planted(func(i *providers.Instance) { i.Deleting = true }), activities.WhyBeingDeleted, 0, 0,
		},
		"of another installation": {
			planted(func(i *providers.Instance) { i.Installation = "another" }), "", 0, 0,
		},
		"two of one owner": {
			func(g *gcLab) {
				planted(func(*providers.Instance) {})(g)
				planted(func(i *providers.Instance) { i.ID, i.UID = fake.ID("y"), runID("other "+g.name) })(g)
			}, activities.WhyContested, 2, 0,
		},
		"two of one UID": {
			func(g *gcLab) {
				planted(func(*providers.Instance) {})(g)
				planted(func(i *providers.Instance) { i.ID, i.Owner = fake.ID("y"), "default/another" })(g)
			}, activities.WhyContested, 2, 0,
		},
		"its workflow runs": {func(g *gcLab) { g.apply("apply", spec); g.running() }, "", 0, 0},
		"its workflow runs, and Visibility shows nothing": {
			func(g *gcLab) { g.apply("apply", spec); g.running(); g.owners.blind = true }, "", 0, 0,
		},
		"its name is taken": {
			func(g *gcLab) { g.apply("apply", spec); g.running(); planted(func(*providers.Instance) {})(g) },
			activities.WhyOwnerReplaced, 0, 0,
		},
		"its workflow was terminated": {
			func(g *gcLab) { g.apply("apply", spec); g.running(); g.terminated() }, activities.WhyOwnerClosed, 0, 1,
		},
		"its name was taken by one that has ended": {
			func(g *gcLab) {
				g.apply("apply", spec)
				g.running()
				g.deleted()
				planted(func(*providers.Instance) {})(g)
			}, activities.WhyOtherClosed, 0, 1,
		},
	} {
		t.Run(name, func(t *testing.T) {
			g := newGCLab(t)
			g.work()
			tc.arrange(g)
			held := len(g.backend.Instances())
			r := g.adopt(adoption.Input{})
			require.Zero(t, r.Adopted)
			require.Equal(t, tc.left, r.Left)
			if tc.why == "" {
				require.Empty(t, r.Claims)
			} else {
				require.Equal(t, tc.why, r.Claims[0].Why)
				require.NotEmpty(t, r.Claims[0].Proof)
			}
			require.Equal(t, tc.orphans, g.adopt(adoption.Input{Orphans: true}).Adopted)
			require.Len(t, g.backend.Instances(), held)
			require.Zero(t, g.adopt(adoption.Input{Orphans: true}).Adopted, "the second time there is nothing to do")
		})
	}
}

func TestAProviderThatCannotBeListedIsNoObstacleToAnAdoption(t *testing.T) {
	g := newGCLab(t)
	stop := g.work()
	g.apply("apply", spec)
	g.running()
	g.lose(stop)
	r, err := g.adopted("", adoption.Input{Providers: []string{"absent", "fake"}})
	require.NoError(t, err)
	require.Equal(t, v1.ReasonProviderNotConfigured, r.Providers[0].Fault.Reason)
	require.Equal(t, 1, r.Providers[1].Adopted)
}

// marked is the instance of this lab's proxy, of a life before.
func (g *gcLab) marked() fleet.Marked {
	m := fleet.Marked{
		Provider: "fake", ID: fake.ID(providers.NameFromUID(runID(g.name))), UID: runID(g.name), Owner: "default/" + g.name,
		SpecMark: proxy.SpecMark(spec, ""),
	}
	g.backend.Plant(providers.Instance{
		ID: m.ID, UID: m.UID, Installation: g.installation, Owner: m.Owner, SpecMark: m.SpecMark,
		State: providers.StateRunning, IP: "127.9.9.9", CreatedAt: time.Now().Add(-time.Hour),
	})
	return m
}

// Between the look at an owner and the start somebody may have come and gone.
func TestAStartThatComesTooLateAdoptsNothing(t *testing.T) {
	g := newGCLab(t)
	g.work()
	m := g.marked()
	g.apply("apply", spec)
	g.running()
	require.ErrorIs(t, g.Adopt(t.Context(), m), fleet.ErrConflict)
	g.terminated()
	require.ErrorIs(t, g.Adopt(t.Context(), m), fleet.ErrConflict, "it has ended meanwhile")
	m.Orphan = true
	require.NoError(t, g.Adopt(t.Context(), m))
	require.Eventually(t, func() bool { return g.get().Metadata.UID == m.UID }, soon, tick)
}

// A proxy that was started and ended before a worker knew of it has not had the instance.
func TestAnAdoptionThatNeverBeganConvictsNobody(t *testing.T) {
	g := newGCLab(t)
	require.NoError(t, g.Adopt(t.Context(), g.marked()))
	g.terminated()
	g.work()
	s := g.collect(gc.Input{Force: true})
	require.Zero(t, s.Deleted)
	require.Len(t, s.Findings, 1)
	require.Equal(t, activities.WhyOtherClosed, s.Findings[0].Why)
	require.Len(t, g.backend.Instances(), 1)
}
