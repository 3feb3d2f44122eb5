//go:build linux

package main

import (
	"bytes"
	"testing"

	"github.com/stretchr/testify/require"

	v1 "github.com/egressfleet/egressfleet/api/v1"
	"github.com/egressfleet/egressfleet/providers"
	"github.com/egressfleet/egressfleet/testsuite/gcefake"
)

func happening(came bool, uid string) gcefake.Happening {
	return gcefake.Happening{
		Came: came, Place: gcefake.Place{Zone: "a", Name: uid}, Labels: map[string]string{providers.MarkUID: uid},
	}
}

// flawless is a run with nothing wrong.
func flawless() evidence {
	return evidence{Proxies: 200, Kills: leastKills, Adopted: 200, Restored: groupOf}
}

func TestEveryFaultFailsARun(t *testing.T) {
	t.Parallel()
	require.Equal(t, verdict{}, judge(flawless()))
	for name, c := range map[string]struct {
		breaks func(*evidence)
		want   verdict // but for the report, which has one line
	}{
		"a proxy that is lost":              {func(e *evidence) { e.Astray = []string{"p"} }, verdict{Lost: 1}},
		"two instances of one UID":          {func(e *evidence) { e.History = twice("u", "u") }, verdict{Duplicates: 1}},
		"what is left":                      {func(e *evidence) { e.Left = []string{"i"} }, verdict{}},
		"an instance that adoption touched": {func(e *evidence) { e.Touched = []string{"i"} }, verdict{}},
		"a workflow task that failed":       {func(e *evidence) { e.Failed = []string{"t"} }, verdict{}},
		"an instance that was collected":    {func(e *evidence) { e.Collected = 1 }, verdict{}},
		"a proxy that was not brought back": {func(e *evidence) { e.Adopted-- }, verdict{}},
		"one that no backup knew":           {func(e *evidence) { e.Restored-- }, verdict{}},
		"a kill during which nobody worked": {func(e *evidence) { e.Weak = []string{"x"} }, verdict{}},
		"a process that was never killed":   {func(e *evidence) { e.Kills-- }, verdict{}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			e := flawless()
			c.breaks(&e)
			got := judge(e)
			require.Len(t, got.Report, 1)
			require.False(t, conclude(new(bytes.Buffer), e, got))
			got.Report = nil
			require.Equal(t, c.want, got)
		})
	}
	e := flawless()
	e.History = append(twice("u", "v"), happening(false, "u"), happening(true, "u"))
	require.Equal(t, verdict{}, judge(e), "two of two, and one after the other")
}

func twice(one, other string) []gcefake.Happening {
	return []gcefake.Happening{happening(true, one), happening(true, other)}
}

func TestTheLastLine(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	require.True(t, conclude(&out, flawless(), judge(flawless())))
	require.Equal(t, "cluster: proxies=200 kills=6 lost=0 duplicates=0 adopted=200\n", out.String())
}

func TestWhatIsNotAsItWasPromised(t *testing.T) {
	t.Parallel()
	living := wish{Name: "p", Living: true, Port: 3128}
	runs := v1.Proxy{
		Metadata: v1.Metadata{Name: "p", Generation: 2}, Spec: v1.ProxySpec{Port: 3128},
		Status: v1.ProxyStatus{Phase: v1.PhaseRunning, ProviderID: "zones/a/instances/i", ObservedGeneration: 2},
	}
	with := func(change func(*v1.Proxy)) []v1.Proxy {
		p := runs
		change(&p)
		return []v1.Proxy{p}
	}
	older := with(func(p *v1.Proxy) { p.Status.ObservedGeneration = 1 })
	blocked := with(func(p *v1.Proxy) { p.Status.Phase = v1.PhaseBlocked })
	one, its := []v1.Proxy{runs}, []string{"i"}
	for name, c := range map[string]struct {
		wish  wish
		shown []v1.Proxy
		there []string
		want  string // of the one line; "" for none
	}{
		"as it was promised":           {living, one, its, ""},
		"gone, as it was promised":     {wish{Name: "p"}, nil, nil, ""},
		"not there":                    {living, nil, nil, "p is not there"},
		"there, though it was deleted": {wish{Name: "p"}, one, its, "p is there, and was deleted"},
		"a request that nobody took":   {wish{Name: "p", Open: "change"}, nil, nil, "p change was never accepted"},
		"of another port":              {wish{"p", true, 1, ""}, one, its, "p has port 3128, and 1 was accepted"},
		"an older generation":          {living, older, its, "p is Running at generation 1 of 2 []"},
		"not running":                  {living, blocked, its, "p is Blocked at generation 2 of 2 []"},
		"an instance that is not there": {
			living, one, []string{"j"}, "p runs on zones/a/instances/i, which the backend does not have",
		},
		"an instance beside it":     {living, one, []string{"i", "j"}, "2 instances for 1 proxies"},
		"one that nobody asked for": {wish{Name: "q"}, one, nil, "p is there, and nobody asked for it"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := compare([]wish{c.wish}, c.shown, c.there)
			if c.want == "" {
				require.Empty(t, got)
				return
			}
			require.Equal(t, []string{c.want}, got)
		})
	}
}

func TestOnlyTheSameCountsAsAdopted(t *testing.T) {
	t.Parallel()
	was := v1.Proxy{Metadata: v1.Metadata{Name: "p", UID: "u"}, Status: v1.ProxyStatus{ProviderID: "i"}}
	other, anew := was, was
	other.Status.ProviderID, anew.Metadata.UID = "j", "v"
	require.Equal(t, 1, same([]v1.Proxy{was}, []v1.Proxy{was}))
	require.Zero(t, same([]v1.Proxy{was}, []v1.Proxy{other}))
	require.Zero(t, same([]v1.Proxy{was}, []v1.Proxy{anew}))
	require.Zero(t, same(nil, []v1.Proxy{was}))
}

func TestAnAnswerThatNoOtherTryChanges(t *testing.T) {
	t.Parallel()
	for _, status := range []int{0, 408, 409, 429, 500, 503} {
		require.False(t, hopeless(status), status)
	}
	for _, status := range []int{400, 404, 422} {
		require.True(t, hopeless(status), status)
	}
}
