package main

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	v1 "github.com/egressfleet/egressfleet/api/v1"
	"github.com/egressfleet/egressfleet/providers"
)

// concluded returns the last line of a run that has all it should have, and its end.
func concluded(t *testing.T, v verdict) (last string, clean bool) {
	t.Helper()
	var out bytes.Buffer
	w := &world{settings: settings{Seed: 7, Operations: usualOperations}, out: &out, backend: troubled(t)}
	id := create(t, w.backend.backend, zones[0], 1)
	for op := range troubles() {
		for range callsEach * len(troubles()[op]) {
			w.backend.draw(op, id)
		}
	}
	w.kills.Store(leastKills)
	w.accepted.Store(leastAccepted)
	clean = w.conclude(v, time.Minute)
	lines := strings.Split(strings.TrimSpace(out.String()), "\n")
	return lines[len(lines)-1], clean
}

func TestTheLastLineIsTheOutcomeAndAnyCountFails(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		v    verdict
		line string
	}{
		"nothing":      {verdict{}, "chaos: operations=300 kills=8 duplicates=0 leaks=0 lost=0"},
		"a duplicate":  {verdict{Duplicates: 1}, "chaos: operations=300 kills=8 duplicates=1 leaks=0 lost=0"},
		"a leak":       {verdict{Leaks: 1}, "chaos: operations=300 kills=8 duplicates=0 leaks=1 lost=0"},
		"a lost proxy": {verdict{Lost: 1}, "chaos: operations=300 kills=8 duplicates=0 leaks=0 lost=1"},
	} {
		last, clean := concluded(t, c.v)
		require.Equal(t, c.line, last, name)
		require.Equal(t, name == "nothing", clean, name)
	}
}

func TestAWishIsTheSumOfWhatWasAccepted(t *testing.T) {
	t.Parallel()
	c := &customer{accepted: &new(world).accepted}
	spec := wished().Spec
	was := v1.Proxy{Status: v1.ProxyStatus{ProviderID: "zone-a/a-1"}}
	for _, step := range []struct {
		op   operation
		try  int
		want wish
	}{
		{operation{Kind: kindCreate, Spec: spec}, 3, wish{Living: true, Spec: spec}},
		{operation{Kind: kindHold}, 1, wish{Living: true, Held: true, Spec: spec}},
		{operation{Kind: kindReplace}, 2, wish{Living: true, Held: true, Spec: spec}},
		{operation{Kind: kindReplace}, 1, wish{Living: true, Held: true, Spec: spec, Replaced: "zone-a/a-1"}},
		{operation{Kind: kindResume}, 1, wish{Living: true, Spec: spec, Replaced: "zone-a/a-1"}},
		{operation{Kind: kindHold}, 1, wish{Living: true, Held: true, Spec: spec, Replaced: "zone-a/a-1"}},
		{operation{Kind: kindDelete}, 1, wish{Held: true, Spec: spec, Replaced: "zone-a/a-1"}},
		{operation{Kind: kindCreate, Spec: spec}, 1, wish{Living: true, Spec: spec, Replaced: "zone-a/a-1"}},
	} {
		c.wish.Open = "asked"
		c.accept(step.op, was, step.try)
		require.Equal(t, step.want, c.wish, step.op.Kind)
	}
	require.EqualValues(t, 8, c.accepted.Load())
}

func TestALieIsNoNewsOfWhatIsBeingDeleted(t *testing.T) {
	t.Parallel()
	b := newBackend()
	id := create(t, b, zones[0], 1)
	require.True(t, b.stays(id))
	require.NoError(t, b.Delete(t.Context(), id))
	require.False(t, b.stays(id))
	_, err := b.Get(t.Context(), id)
	require.NotErrorIs(t, err, providers.ErrNotFound)
}
