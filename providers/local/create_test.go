package local_test

import (
	"maps"
	"net"
	"slices"
	"strconv"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/egressfleet/egressfleet/providers"
)

func TestCreateRefusesWhatItCanNeverDo(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	mark := map[string]string{providers.MarkUID: "x"}
	for name, c := range map[string]struct {
		change func(*providers.CreateRequest)
		says   []string
	}{
		"a name that is no label": {func(r *providers.CreateRequest) { r.Name = "../x" }, []string{"name", "../x"}},
		"a name with a dot":       {func(r *providers.CreateRequest) { r.Name = "a.b" }, []string{"name", "a.b"}},
		"no UID":                  {func(r *providers.CreateRequest) { r.UID = "" }, []string{"uid"}},
		"port 0":                  {func(r *providers.CreateRequest) { r.Port = 0 }, []string{"spec.port", "0"}},
		"a port past the last":    {func(r *providers.CreateRequest) { r.Port = 65536 }, []string{"spec.port", "65536"}},
		"a label in a mark's place": {
			func(r *providers.CreateRequest) { r.Labels = mark }, []string{"labels", providers.MarkUID},
		},
	} {
		t.Run(name, func(t *testing.T) {
			req := request("refused")
			c.change(&req)
			_, err := l.Create(t.Context(), req)
			require.ErrorIs(t, err, providers.ErrPermanent)
			for _, word := range c.says {
				require.ErrorContains(t, err, word)
			}
			require.NoDirExists(t, l.root(), "refused before anything is touched")
		})
	}
}

func TestEachInstanceHasAnAddressOfItsOwn(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	one, two := l.running("one"), l.running("two")
	require.NotEqual(t, one.IP, two.IP)
	for _, i := range []providers.Instance{one, two} {
		require.Equal(t, i.IP, i.EgressIP)
		c, err := net.Dial("tcp", net.JoinHostPort(i.IP, "3128"))
		require.NoError(t, err)
		require.NoError(t, c.Close())
	}
}

func TestOneAddressHasEachPortOnce(t *testing.T) {
	t.Parallel()
	l := newLab(t, oneAddress)
	free := freePorts(t, 2)
	first, second, third := request("first"), request("second"), request("third")
	first.Port, second.Port, third.Port = free[0], free[1], free[0]

	id := l.create(first)
	require.Equal(t, "127.0.0.1", l.get(id).IP)
	require.Equal(t, "127.0.0.1", l.get(l.create(second)).IP)

	_, err := l.Create(t.Context(), third)
	require.ErrorIs(t, err, providers.ErrQuotaExceeded)
	require.ErrorContains(t, err, "127.0.0.1 port "+strconv.Itoa(free[0]))
	require.NotContains(t, l.folders(), third.Name, "what was refused leaves nothing")

	require.NoError(t, l.Delete(t.Context(), id))
	l.create(third)
}

func TestAPortThatAnotherProgramHasIsQuota(t *testing.T) {
	t.Parallel()
	l := newLab(t, oneAddress)
	other, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer func() { _ = other.Close() }()
	req := request("u")
	req.Port = other.Addr().(*net.TCPAddr).Port
	_, err = l.Create(t.Context(), req)
	require.ErrorIs(t, err, providers.ErrQuotaExceeded)
	require.ErrorContains(t, err, "port "+strconv.Itoa(req.Port))
}

// freePorts returns ports of 127.0.0.1 that nobody has at this moment.
func freePorts(t *testing.T, n int) []int {
	t.Helper()
	ports := make([]int, n)
	for i := range ports {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		require.NoError(t, err)
		defer func() { _ = l.Close() }()
		ports[i] = l.Addr().(*net.TCPAddr).Port
	}
	return ports
}

func TestAFullRangeIsQuota(t *testing.T) {
	t.Parallel()
	own := ownRange()
	l := newLab(t, addresses(own+".0/30"))
	one, two := l.running("one"), l.running("two")
	require.ElementsMatch(t, []string{own + ".1", own + ".2"}, []string{one.IP, two.IP})

	other := request("three")
	other.Port = 3129 // an address is taken on every port
	_, err := l.Create(t.Context(), other)
	require.ErrorIs(t, err, providers.ErrQuotaExceeded)
	require.ErrorContains(t, err, own+".0/30")

	require.NoError(t, l.Delete(t.Context(), one.ID))
	require.Equal(t, one.IP, l.get(l.create(other)).IP)
}

func TestAnAddressThatIsBusyIsPassedOver(t *testing.T) {
	t.Parallel()
	own := ownRange()
	l := newLab(t, addresses(own+".0/30"))
	busy, err := net.Listen("tcp", own+".1:3128")
	require.NoError(t, err)
	defer func() { _ = busy.Close() }()
	require.Equal(t, own+".2", l.running("one").IP)
	_, err = l.Create(t.Context(), request("two"))
	require.ErrorIs(t, err, providers.ErrQuotaExceeded)
}

func TestAnInstanceMadeAgainGetsItsAddressBack(t *testing.T) {
	t.Parallel()
	l := newLab(t, addresses(ownRange()+".0/24"))
	first := l.running("u")
	require.NoError(t, l.Delete(t.Context(), first.ID))
	require.Equal(t, first.IP, l.running("u").IP)
}

func TestFiftyCreatesAtOnce(t *testing.T) {
	t.Parallel()
	const many = 50
	l := newLab(t)
	var calls sync.WaitGroup
	for i := range many {
		calls.Go(func() {
			if _, err := l.Create(t.Context(), request(strconv.Itoa(i))); err != nil {
				t.Error(err)
			}
		})
	}
	calls.Wait()
	listed, err := l.ListByTag(t.Context())
	require.NoError(t, err)
	require.Len(t, listed, many)
	addresses := map[string]bool{}
	for _, i := range listed {
		require.Equal(t, providers.StateRunning, i.State)
		addresses[i.IP] = true
	}
	require.Len(t, addresses, many)
	require.Len(t, l.processes(), many)
}

// On ports of their own nothing but the records keeps them apart.
func TestCreatesAtOnceShareNoAddress(t *testing.T) {
	t.Parallel()
	const many = 14
	l := newLab(t, addresses(ownRange()+".0/28"))
	var calls sync.WaitGroup
	for i := range many {
		p := l.reopen() // as if each were a worker of its own
		calls.Go(func() {
			req := request(strconv.Itoa(i))
			req.Port += i
			if _, err := p.Create(t.Context(), req); err != nil {
				t.Error(err)
			}
		})
	}
	calls.Wait()
	addresses := map[string]bool{}
	for _, i := range l.inventory().Instances {
		addresses[i.IP] = true
	}
	require.Len(t, addresses, many)
}

func TestTwentyCreatesOfOneNameMakeOneProcess(t *testing.T) {
	t.Parallel()
	const many = 20
	l := newLab(t)
	var calls sync.WaitGroup
	for range many {
		p := l.reopen() // as if each were a worker of its own
		calls.Go(func() {
			if _, err := p.Create(t.Context(), request("u")); err != nil {
				t.Error(err)
			}
		})
	}
	calls.Wait()
	require.Len(t, l.processes(), 1)
	require.Len(t, l.folders(), 1)
}

func TestEverythingOfOneNameAtOnce(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	ctx := t.Context()
	id := "local/" + request("u").Name
	l.create(request("u")) // so that the root is there
	allowed := func(err error, classes ...providers.Class) {
		for _, c := range append(classes, "") {
			if providers.ClassOf(err) == c {
				return
			}
		}
		t.Error(err)
	}
	var calls sync.WaitGroup
	for range 5 {
		calls.Go(func() { _, err := l.Create(ctx, request("u")); allowed(err) })
		calls.Go(func() { allowed(l.Delete(ctx, id)) })
		calls.Go(func() { _, err := l.Get(ctx, id); allowed(err, providers.ErrNotFound) })
		calls.Go(func() { _, err := l.ListByTag(ctx); allowed(err) })
	}
	calls.Wait()
	require.NoError(t, l.Delete(ctx, id))
	require.Empty(t, l.processes())
	require.Empty(t, l.folders())
}

func TestRecordHoldsTheMarks(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	req := request("u")
	req.Placement = providers.Placement{Zone: "z", Region: "r", MachineType: "m", Image: "i"}
	l.create(req)
	rec := l.readRecord(req.Name)
	marks := rec["marks"].(map[string]any)
	require.Equal(t, map[string]any{
		"proxy-operator-managed": "true", "proxy-operator-uid": "u", "proxy-operator-installation": installation,
		"proxy-operator-owner": "default/u", "proxy-operator-spec": `{"port":3128}`,
	}, marks)
	require.Equal(t, map[string]any{"team": "crawlers"}, rec["labels"])
	require.Equal(t, map[string]any{"zone": "z", "region": "r", "machineType": "m", "image": "i"}, rec["placement"])
	require.ElementsMatch(t, []string{
		"version", "name", "marks", "labels", "placement", "address", "port", "attempt", "createdAt", "startingAt",
	}, slices.Collect(maps.Keys(rec)))
}
