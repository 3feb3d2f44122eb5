package kvm

import (
	"fmt"
	"sync/atomic"
	"testing"

	"github.com/digitalocean/go-libvirt"
	"github.com/stretchr/testify/require"

	"github.com/egressfleet/egressfleet/providers"
	"github.com/egressfleet/egressfleet/providers/kvm/conn"
)

// spread returns a lab of three hosts, of which a and b are one group.
func spread() *lab {
	l := newLab("a", "b", "c")
	l.cfg.Hosts[0].Region, l.cfg.Hosts[1].Region = "home", "home"
	return l
}

func inGroup(uid string) providers.CreateRequest {
	req := request(uid)
	req.Placement.Region = "home"
	return req
}

// hostOf is where an instance went, as its ID says.
func hostOf(t *testing.T, id string) string {
	t.Helper()
	host, _, err := parseID(id)
	require.NoError(t, err)
	return host
}

func TestInstancesSpreadByFreeMemory(t *testing.T) {
	t.Parallel()
	count := map[string]int{}
	options := []option{
		{&host{HostConfig: HostConfig{Name: "a"}}, room{memory: 30 << 30}},
		{&host{HostConfig: HostConfig{Name: "b"}}, room{memory: 10 << 30}},
		{&host{HostConfig: HostConfig{Name: "c"}}, room{}},
	}
	const names = 1000
	moved := 0
	for i := range names {
		name := providers.NameFromUID(fmt.Sprint(i))
		first := choose(name, options).host.Name
		require.Equal(t, first, choose(name, []option{options[2], options[1], options[0]}).host.Name, "in any order")
		count[first]++
		less := []option{options[0], options[1], options[2]}
		less[0].room.memory -= 1 << 30
		if choose(name, less).host.Name != first {
			moved++
		}
	}
	require.InDelta(t, 750, count["a"], 60, "three of four go where three of four bytes are")
	require.Zero(t, count["c"])
	require.Less(t, moved, names/50, "few choices change with the memory")
}

func TestARepeatedCreateFindsItsInstanceWhereverItIs(t *testing.T) {
	t.Parallel()
	l := spread()
	p := l.open(t)
	hosts := map[string]bool{}
	for i := range 20 {
		req := inGroup(fmt.Sprintf("spread-%d", i))
		id, err := p.Create(t.Context(), req)
		require.NoError(t, err)
		hosts[hostOf(t, id)] = true
		restore := l.hosts[hostOf(t, id)].exhaust() // it would choose the other one now
		again, err := p.Create(t.Context(), req)
		restore()
		require.NoError(t, err)
		require.Equal(t, id, again)
		found, err := p.Get(t.Context(), id)
		require.NoError(t, err)
		require.Equal(t, req.UID, found.UID)
	}
	require.Equal(t, map[string]bool{"a": true, "b": true}, hosts)
}

func TestAFullHostIsPassedOver(t *testing.T) {
	t.Parallel()
	l := spread()
	l.hosts["a"].exhaust()
	p := l.open(t)
	for i := range 5 {
		id, err := p.Create(t.Context(), inGroup(fmt.Sprint(i)))
		require.NoError(t, err)
		require.Equal(t, "b", hostOf(t, id))
	}
	l.hosts["b"].exhaust()
	_, err := p.Create(t.Context(), inGroup("none"))
	require.ErrorIs(t, err, providers.ErrQuotaExceeded)
	require.ErrorContains(t, err, "host a")
	require.ErrorContains(t, err, "host b")
}

// A host that cannot be asked may hold the name: another instance elsewhere would be a double.
func TestNothingIsMadeWhileAHostOfTheGroupCannotBeAsked(t *testing.T) {
	t.Parallel()
	l := spread()
	p, req := l.open(t), inGroup("doubtful")
	heal := l.hosts["a"].fail(conn.StageDial, conn.Unreachable)
	_, err := p.Create(t.Context(), req)
	require.ErrorIs(t, err, providers.ErrTransient)
	require.ErrorContains(t, err, "whether host a holds the name cannot be told")
	require.Empty(t, l.left(req.UID))
	heal()
	id, err := p.Create(t.Context(), req)
	require.NoError(t, err)
	other := map[string]string{"a": "b", "b": "a"}[hostOf(t, id)]
	heal = l.hosts[other].fail(conn.StageDial, conn.Unreachable)
	defer heal()
	again, err := p.Create(t.Context(), req)
	require.NoError(t, err, "it is found, so no other host matters")
	require.Equal(t, id, again)
}

// Two workers put one instance on two hosts at the same moment.
func TestTheNameOnTwoHostsAtOnceIsNoDouble(t *testing.T) {
	t.Parallel()
	l := spread()
	req := inGroup("raced")
	for _, h := range l.hosts {
		var undo func()
		undo = h.answering(func(rpc, _ string) error {
			if rpc == "DomainDefineXMLFlags" {
				undo()
				for name, other := range l.hosts {
					if other != h && name != "c" {
						other.squat(t, req, func(has *marks) { has.Phase = phaseStarting })
					}
				}
			}
			return nil
		})
	}
	p := l.open(t)
	_, err := p.Create(t.Context(), req)
	require.ErrorIs(t, err, providers.ErrTransient)
	require.ErrorContains(t, err, "as well")
	l.answering(nil)
	id, err := p.Create(t.Context(), req)
	require.NoError(t, err)
	found, err := p.Get(t.Context(), id)
	require.NoError(t, err)
	require.Equal(t, providers.StateRunning, found.State)
	all, err := p.ListByTag(t.Context())
	require.NoError(t, err)
	require.Len(t, all, 1)
}

func TestANameOfSomebodyElseOnAnyHostIsRefused(t *testing.T) {
	t.Parallel()
	for _, host := range []string{"a", "b"} {
		l := spread()
		req := inGroup("taken")
		l.hosts[host].squat(t, req, func(has *marks) { has.UID = "theirs" })
		_, err := l.open(t).Create(t.Context(), req)
		var foreign *providers.ForeignError
		require.ErrorAs(t, err, &foreign)
		require.Equal(t, "theirs", foreign.Found.UID)
	}
}

func TestARetiredHostKeepsWhatItHasAndGetsNothing(t *testing.T) {
	t.Parallel()
	l := spread()
	req := inGroup("kept")
	l.hosts["b"].exhaust()
	id, err := l.open(t).Create(t.Context(), req)
	require.NoError(t, err)
	require.Equal(t, "a", hostOf(t, id))
	l.hosts["b"].memoryFree = memoryHere
	l.cfg.Hosts[0].Retired = true
	p := l.open(t)
	again, err := p.Create(t.Context(), req)
	require.NoError(t, err)
	require.Equal(t, id, again, "it is still found")
	fresh, err := p.Create(t.Context(), inGroup("fresh"))
	require.NoError(t, err)
	require.Equal(t, "b", hostOf(t, fresh))
	all, err := p.ListByTag(t.Context())
	require.NoError(t, err)
	require.Len(t, all, 2)
	require.Equal(t, "true", p.Check(t.Context())[0].Details["retired"])
	require.NoError(t, p.Delete(t.Context(), id))

	l.cfg.Hosts[1].Retired = true
	_, err = l.open(t).Create(t.Context(), inGroup("nowhere"))
	require.ErrorIs(t, err, providers.ErrPermanent)
	require.ErrorContains(t, err, "retired")
}

func TestWhatIsOnAHostThatWasRemovedIsLeftBehind(t *testing.T) {
	t.Parallel()
	l := newLab("a", "b")
	req := request("stranded")
	req.Placement.Zone = "b"
	id, err := l.open(t).Create(t.Context(), req)
	require.NoError(t, err)
	removed := l.cfg.Hosts[1]
	l.cfg.Hosts = l.cfg.Hosts[:1]
	p := l.open(t)
	_, err = p.Get(t.Context(), id)
	require.ErrorIs(t, err, providers.ErrPermanent)
	require.ErrorContains(t, err, `host "b" is not configured`)
	err = p.Delete(t.Context(), id)
	require.ErrorIs(t, err, providers.ErrPermanent)
	var left *providers.LeftBehindError
	require.ErrorAs(t, err, &left)
	require.Equal(t, "host b", left.Place)
	require.NotEmpty(t, l.left(req.UID))

	l.cfg.Hosts = append(l.cfg.Hosts, removed)
	all, err := l.open(t).ListByTag(t.Context())
	require.NoError(t, err)
	require.Len(t, all, 1, "put back, it is listed again")
}

// Libvirt remembers what was free in a pool; only a refresh shows the room that somebody made.
func TestAPoolThatSeemsFullIsReadAgain(t *testing.T) {
	t.Parallel()
	l := newLab("a")
	p := l.open(t)
	l.hosts["a"].poolFree = 1
	_, err := p.Create(t.Context(), request("u"))
	require.ErrorIs(t, err, providers.ErrQuotaExceeded)
	l.hosts["a"].poolMade = 50 << 30
	_, err = p.Create(t.Context(), request("u"))
	require.NoError(t, err)
}

// While libvirt makes a volume it finds it by its name and not by its path.
func TestACreateWaitsForAVolumeThatIsBeingMade(t *testing.T) {
	t.Parallel()
	l := newLab("a")
	p := l.open(t)
	var asked atomic.Int32
	l.answering(func(rpc, _ string) error {
		if rpc == "StorageVolGetPath" && asked.Add(1) < 3 {
			return says(libvirt.ErrNoStorageVol, "Storage volume not found: no storage vol with matching path")
		}
		return nil
	})
	_, err := p.Create(t.Context(), request("u"))
	require.NoError(t, err)
}

// Who was overtaken finds what the other one has made.
func TestACreateThatWasOvertakenTakesUpTheOther(t *testing.T) {
	t.Parallel()
	l := newLab("a")
	p, other := l.open(t), l.open(t)
	var begun atomic.Bool
	l.answering(func(rpc, _ string) error {
		if rpc == "StorageVolCreateXML" && begun.CompareAndSwap(false, true) {
			_, err := other.Create(t.Context(), request("u"))
			require.NoError(t, err)
		}
		return nil
	})
	_, err := p.Create(t.Context(), request("u"))
	require.NoError(t, err)
}
