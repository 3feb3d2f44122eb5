package server_test

import (
	"encoding/json"
	"errors"
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	v1 "github.com/egressfleet/egressfleet/api/v1"
)

// listed asks for the providers.
func (s *stage) listed(t *testing.T) (list v1.ProviderList) {
	t.Helper()
	answer := s.ask(t, http.MethodGet, "/v1/providers", "")
	require.Equal(t, http.StatusOK, answer.Code)
	require.NoError(t, json.Unmarshal(answer.Body.Bytes(), &list))
	return list
}

func TestTheLastChecksAreAskedForNowAndThen(t *testing.T) {
	t.Parallel()
	s := newStage()
	round := func(reason string) {
		s.fleet.set(func(f *fakeFleet) {
			f.checks = map[string]v1.ProviderCheck{"gcp": {
				Supported: true, CheckedAt: birth, Targets: []v1.ProviderTarget{{Target: "a", Reason: reason}},
			}}
		})
	}
	shown := func() string { return s.listed(t).Items[0].Check.Targets[0].Reason }
	require.Nil(t, s.listed(t).Items[0].Check)
	require.Contains(t, s.listed(t).Checks.Error, "no run")
	s.fleet.set(func(f *fakeFleet) { f.first = birth.Add(time.Minute) })
	s.clock.move(5 * time.Second)
	require.Equal(t, v1.ProviderChecks{FirstAt: birth.Add(time.Minute)}, s.listed(t).Checks, "which is no fault")
	s.fleet.set(func(f *fakeFleet) { f.first = time.Time{} })
	s.clock.move(5 * time.Second)
	require.Zero(t, s.listed(t).Checks.FirstAt, "it has been there, and failed")
	require.Contains(t, s.listed(t).Checks.Error, "no run")
	round("Timeout")
	s.clock.move(5 * time.Second)
	require.Equal(t, "Timeout", shown())
	round("Reachable")
	s.clock.move(4 * time.Second)
	require.Equal(t, "Timeout", shown(), "it is not asked for with every request")
	s.clock.move(time.Second)
	require.Equal(t, "Reachable", shown())
	require.Equal(t, 5, s.fleet.rounds)

	s.fleet.set(func(f *fakeFleet) { f.fail = errors.New("connection refused") })
	s.clock.move(time.Hour)
	list := s.listed(t)
	require.Equal(t, "Reachable", list.Items[0].Check.Targets[0].Reason, "what is known is told")
	require.Equal(t, "connection refused", list.Checks.Error)
	require.Equal(t, birth.Add(time.Minute), list.Checks.CheckedAt, "and how old it is")
	s.fleet.set(func(f *fakeFleet) { f.fail = nil })
	s.clock.move(5 * time.Second)
	require.Empty(t, s.listed(t).Checks.Error)
}

func TestAFleetThatIsSilentDoesNotHoldUpTheProviders(t *testing.T) {
	t.Parallel()
	s := newStage()
	s.fleet.set(func(f *fakeFleet) { f.hang = true })
	list := s.listed(t)
	require.Len(t, list.Items, 2)
	require.Contains(t, list.Checks.Error, "deadline")
	require.LessOrEqual(t, s.fleet.limit, 2*time.Second)
}
