package main

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/egressfleet/egressfleet/activities"
	v1 "github.com/egressfleet/egressfleet/api/v1"
	"github.com/egressfleet/egressfleet/starter/fleet"
	"github.com/egressfleet/egressfleet/workflows/gc"
)

// drained is a fleet whose proxies end when they are told to, unless they are stuck.
type drained struct {
	*fakeFleet
	stuckOnes []string
	late      *v1.Proxy // one that is listed only after the backends were looked at
	mu        sync.Mutex
}

func (d *drained) Delete(ctx context.Context, namespace, name, reason string, r fleet.Request) (v1.Proxy, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.fakeFleet.Delete(ctx, namespace, name, reason, r)
}

func (d *drained) WaitGone(ctx context.Context, _, name string) error {
	if slices.Contains(d.stuckOnes, name) {
		<-ctx.Done()
		return ctx.Err()
	}
	d.proxies = slices.DeleteFunc(d.proxies, func(p v1.Proxy) bool { return p.Metadata.Name == name })
	return nil
}

func (d *drained) RunSweep(ctx context.Context, s fleet.Schedule, input, result any) error {
	if d.late != nil {
		d.proxies, d.late = append(d.proxies, *d.late), nil
	}
	return d.fakeFleet.RunSweep(ctx, s, input, result)
}

// listing is what a backend lists once no proxy is there.
func listing(change func(*gc.Sweep)) *fakeSweeps {
	s := gc.Sweep{SweepReport: activities.SweepReport{Provider: "gcp"}}
	change(&s)
	return &fakeSweeps{result: gc.Result{Sweeps: []gc.Sweep{s}}}
}

func nothingListed() *fakeSweeps { return listing(func(*gc.Sweep) {}) }

func drainable(s *fakeSweeps) *drained {
	f := fleetOfThree()
	f.Sweeps = s
	for i := range f.proxies {
		f.proxies[i].Metadata.UID = "uid-" + f.proxies[i].Metadata.Name
	}
	return &drained{fakeFleet: f}
}

func TestDrainOnlySaysWhatItWouldDelete(t *testing.T) {
	t.Parallel()
	f := drainable(nothingListed())
	out, errOut, code := run(t.Context(), f, "", "drain", "--all")
	require.Equal(t, 1, code)
	require.Contains(t, errOut, "--yes deletes these, 3 in all")
	require.Contains(t, out, "NAMESPACE")
	for _, p := range f.proxies {
		require.Contains(t, out, p.Metadata.Name)
	}
	require.Empty(t, f.asked)
	require.Len(t, f.proxies, 3)
}

func TestDrainDeletesAndLooksAtTheBackend(t *testing.T) {
	t.Parallel()
	f := drainable(nothingListed())
	out, errOut, code := run(t.Context(), f, "", "drain", "--all", "--yes", "--reason", "moving")
	require.Zero(t, code, errOut)
	require.Equal(t, "nothing is left\n", out)
	require.Empty(t, f.proxies)
	require.Len(t, f.asked, 3, "each is asked once")
	for _, asked := range f.asked {
		require.Contains(t, asked, "because moving")
	}
	sweeps := f.Sweeps.(*fakeSweeps)
	require.Equal(t, []string{`run orphan-gc/drain {"plan":true,"everything":true}`}, sweeps.asked)
}

func TestDrainLeavesOtherProvidersAlone(t *testing.T) {
	t.Parallel()
	f := drainable(nothingListed())
	theirs, others := 0, 0
	for _, p := range f.proxies {
		if p.Spec.Provider == "gcp" {
			theirs++
		} else {
			others++
		}
	}
	require.Positive(t, theirs)
	require.Positive(t, others)
	_, errOut, code := run(t.Context(), f, "", "drain", "--provider", "gcp", "--yes")
	require.Zero(t, code, errOut)
	require.Len(t, f.asked, theirs)
	require.Len(t, f.proxies, others)
	require.Equal(t, []string{`run orphan-gc/drain {"providers":["gcp"],"plan":true,"everything":true}`},
		f.Sweeps.(*fakeSweeps).asked)
}

func TestDrainFailsWithTheListOfWhatIsLeft(t *testing.T) {
	t.Parallel()
	left := activities.Finding{ID: "zone-a/x", Kind: "instance", Owner: "default/x", Why: "Young"}
	for name, tc := range map[string]struct {
		fleet *drained
		want  string
	}{
		"an instance": {drainable(listing(func(s *gc.Sweep) {
			s.Listed, s.Young, s.Findings = 1, 1, []activities.Finding{left}
		})), "zone-a/x"},
		"instances that are not named": {drainable(listing(func(s *gc.Sweep) { s.Listed = 1 })), "gcp       1"},
		"a part that cannot be listed": {drainable(listing(func(s *gc.Sweep) { s.Omitted = []string{"zone-b"} })), "zone-b"},
		"a backend that is away": {
			drainable(listing(func(s *gc.Sweep) { s.Fault = &activities.Fault{Text: "no route"} })), "gcp was skipped: no route",
		},
		"no worker": {
			drainable(&fakeSweeps{result: gc.Result{}, fail: errors.New("nobody works")}), "nobody works",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			out, errOut, code := run(t.Context(), tc.fleet, "", "drain", "--all", "--yes", "--timeout", "3s")
			require.Equal(t, exitTimeout, code)
			require.Contains(t, out, tc.want)
			require.Contains(t, errOut, "something is left")
		})
	}
}

func TestDrainNamesAProxyThatIsStuck(t *testing.T) {
	t.Parallel()
	f := drainable(nothingListed())
	stuck := f.proxies[1].Metadata.Name
	f.stuckOnes = []string{stuck}
	out, _, code := run(t.Context(), f, "", "drain", "--all", "--yes", "--timeout", "3s", "-o", "json")
	require.Equal(t, exitTimeout, code)
	var left struct{ Proxies []v1.Proxy }
	require.NoError(t, json.Unmarshal([]byte(out), &left))
	require.True(t, slices.ContainsFunc(left.Proxies, func(p v1.Proxy) bool { return p.Metadata.Name == stuck }))
	require.NotContains(t, out, "hunter2", "user-data is not shown")
	require.Empty(t, f.Sweeps.(*fakeSweeps).asked, "the backend is looked at once the proxies have ended")
}

func TestDrainDoesNotMissAProxyThatComesLate(t *testing.T) {
	t.Parallel()
	f := drainable(nothingListed())
	f.late = &v1.Proxy{
		Metadata: v1.Metadata{Namespace: "default", Name: "late", UID: "late"}, Spec: v1.ProxySpec{Provider: "gcp"},
	}
	_, errOut, code := run(t.Context(), f, "", "drain", "--all", "--yes")
	require.Zero(t, code, errOut)
	require.Contains(t, f.asked, "delete default/late because starter drain")
	require.Empty(t, f.proxies)
}

func TestDrainHasToBeToldWhat(t *testing.T) {
	t.Parallel()
	for _, args := range []string{
		"", "--all --provider gcp", "--provider NoLabel", "--all --timeout 0s", "--all x",
		"--all --reason " + strings.Repeat("x", 2000),
	} {
		f := drainable(nothingListed())
		_, errOut, code := run(t.Context(), f, "", append([]string{"drain", "--yes"}, strings.Fields(args)...)...)
		require.Equal(t, 2, code, args)
		require.NotEmpty(t, errOut)
		require.Empty(t, f.asked)
	}
}
