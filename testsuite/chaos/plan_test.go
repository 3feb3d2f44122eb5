package main

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/egressfleet/egressfleet/providers"
)

func TestAScriptIsTheSameForTheSameSeedAndMakesSense(t *testing.T) {
	t.Parallel()
	seen := map[kind]int{}
	for seed := range uint64(50) {
		plan := func() []operation { return script("p", 20, storm, rand.New(rand.NewPCG(seed, 1))) }
		again := plan()
		require.Equal(t, plan(), again)
		living, held, ids := false, false, map[string]bool{}
		for _, op := range plan() {
			seen[op.Kind]++
			require.Equal(t, op.Kind == kindCreate, !living, "a proxy is made when there is none")
			require.Equal(t, op.Kind == kindCreate || op.Kind == kindChange, op.Spec.Port > 0)
			require.False(t, op.Kind == kindResume && !held)
			require.False(t, ids[op.RequestID], "each has a request ID of its own")
			require.NoError(t, validIfAny(op))
			ids[op.RequestID] = true
			living = op.Kind != kindDelete
			held = living && op.Kind != kindCreate && op.Kind != kindResume && (held || op.Kind == kindHold)
		}
	}
	require.Len(t, seen, 6, "each kind: %v", seen)
}

func validIfAny(op operation) error {
	if op.Spec.Port == 0 {
		return nil
	}
	return op.Spec.Validate()
}

func TestTheSettingsOfARun(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		seed, operations string
		want             settings
		fault            string
	}{
		"both are given":    {"7", "250", settings{7, 250}, ""},
		"only the seed":     {"7", "", settings{7, usualOperations}, ""},
		"no seed at all":    {"x", "", settings{}, envSeed + `: "x"`},
		"too few":           {"7", "10", settings{}, envOperations + `: "10"`},
		"not a number":      {"7", "many", settings{}, envOperations + `: "many"`},
		"a negative number": {"-7", "", settings{}, envSeed + `: "-7"`},
	} {
		got, err := settingsOf(func(key string) string {
			return map[string]string{envSeed: c.seed, envOperations: c.operations}[key]
		})
		if c.fault != "" {
			require.ErrorContains(t, err, c.fault, name)
			continue
		}
		require.NoError(t, err, name)
		require.Equal(t, c.want, got, name)
	}
}

func TestTheWeather(t *testing.T) {
	t.Parallel()
	b := newBackend()
	w := &weather{backend: b, random: rand.New(rand.NewPCG(1, 1)), struck: map[string]bool{}}
	id := create(t, b, zones[0], 1)
	pass := func(n int, stormy bool) {
		for range n {
			w.pass(stormy)
		}
	}
	pass(200, false)
	got, err := b.Get(t.Context(), id)
	require.NoError(t, err)
	require.Equal(t, providers.StateRunning, got.State, "it boots, and nothing bad happens in calm weather")

	pass(5000, true)
	got, err = b.Get(t.Context(), id)
	require.True(t, err != nil || got.State == providers.StateTerminated, "it vanishes or stops in a storm")

	create(t, b, zones[0], 2)
	pass(5000, true)
	got, err = b.Get(t.Context(), zones[0]+"/a-2")
	require.NoError(t, err)
	require.Equal(t, providers.StateRunning, got.State, "that happens once to each UID")
	require.NoError(t, b.Delete(t.Context(), got.ID))
	pass(200, false)
	_, err = b.Get(t.Context(), got.ID)
	require.ErrorIs(t, err, providers.ErrNotFound, "what is deleted goes")
}

func TestARunThatProvesTooLittleSaysSo(t *testing.T) {
	t.Parallel()
	w := &world{settings: settings{Operations: usualOperations}, backend: troubled(t)}
	w.kills.Store(leastKills - 1)
	w.accepted.Store(leastAccepted - 1)
	require.Len(t, w.shortcomings(), 2+len(w.backend.missing()))
	w.kills.Store(leastKills)
	w.accepted.Store(leastAccepted)
	require.Len(t, w.shortcomings(), len(w.backend.missing()))
	require.NotEmpty(t, w.backend.missing())
}

func TestTheServerIsBackBeforeTheStormIsOver(t *testing.T) {
	t.Parallel()
	require.Less(t, latestOutage+outage, storm)
}

func TestAStormLastsUntilEnoughHasHappened(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		lasted   time.Duration
		accepted int64
		kills    int64
		want     bool
	}{
		"enough, and long enough": {storm, leastAccepted, leastKills, true},
		"too short":               {storm - 1, leastAccepted, leastKills, false},
		"too few operations":      {storm, leastAccepted - 1, leastKills, false},
		"too few kills":           {storm, leastAccepted, leastKills - 1, false},
		"not for ever":            {longestStorm, 0, 0, true},
	} {
		w := &world{settings: settings{Operations: usualOperations}}
		w.accepted.Store(c.accepted)
		w.kills.Store(c.kills)
		require.Equal(t, c.want, w.over(c.lasted), name)
	}
}

func TestEveryOperationHasOneClient(t *testing.T) {
	t.Parallel()
	for _, n := range []int{leastOperations, usualOperations, usualOperations + 1} {
		sum := 0
		for i := range proxies {
			sum += share(n, i)
		}
		require.Equal(t, n, sum)
	}
}
