package adoption_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"sort"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/activity"

	"github.com/egressfleet/egressfleet/activities"
	"github.com/egressfleet/egressfleet/providers"
	"github.com/egressfleet/egressfleet/testsuite/workflowenv"
	"github.com/egressfleet/egressfleet/workflows/adoption"
)

// hands answer as a test says.
type hands struct {
	rolls  map[string][]string // by provider, sorted; none is one that cannot be listed
	whole  bool                // rolls have no pages, as before there were any
	report func(activities.AdoptInput) activities.AdoptReport
	mu     sync.Mutex
	asked  []activities.AdoptInput
	called []int // of each roll call, how much was told
}

func (h *hands) rollCall(_ context.Context, provider, after string) ([]string, error) {
	roll, listed := h.rolls[provider]
	if !listed {
		return nil, activities.ToApplicationError(
			providers.Wrap(providers.ErrPermanent, providers.OpList, provider, "", errors.New("no route to host")))
	}
	if !h.whole {
		from := sort.Search(len(roll), func(i int) bool { return roll[i] > after })
		roll = roll[from:min(len(roll), from+activities.RollPage)]
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.called = append(h.called, len(roll))
	return roll, nil
}

func (h *hands) adopt(_ context.Context, in activities.AdoptInput) (activities.AdoptReport, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.asked = append(h.asked, in)
	if h.report != nil {
		return h.report(in), nil
	}
	return activities.AdoptReport{Provider: in.Provider}, nil
}

func (h *hands) run(t *testing.T, in adoption.Input) (r adoption.Result) {
	t.Helper()
	env := workflowenv.New()
	for name, do := range map[string]any{
		"ProviderNames": func(context.Context) ([]string, error) { return []string{"b", "a"}, nil },
		"RollCall":      h.rollCall, "AdoptInstances": h.adopt,
	} {
		env.RegisterActivityWithOptions(do, activity.RegisterOptions{Name: name})
	}
	env.ExecuteWorkflow(adoption.Run, in)
	require.NoError(t, env.GetWorkflowError())
	require.NoError(t, env.GetWorkflowResult(&r))
	slices.SortFunc(h.asked, func(a, b activities.AdoptInput) int { return strings.Compare(a.Provider, b.Provider) })
	return r
}

func TestWhatAnAdoptionIsAskedFor(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		in   adoption.Input
		want []activities.AdoptInput
	}{
		"all":              {adoption.Input{}, []activities.AdoptInput{{Provider: "a"}, {Provider: "b"}}},
		"one, named twice": {adoption.Input{Providers: []string{"b", "b"}}, []activities.AdoptInput{{Provider: "b"}}},
		"a plan, with orphans": {
			adoption.Input{Providers: []string{"a"}, Plan: true, Orphans: true},
			[]activities.AdoptInput{{Provider: "a", Plan: true, Orphans: true}},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := &hands{rolls: map[string][]string{"a": {"x"}, "b": {"y"}}}
			h.run(t, tc.in)
			require.Equal(t, tc.want, h.asked)
		})
	}
}

func TestWhatTwoProvidersClaimIsContestedOnBoth(t *testing.T) {
	t.Parallel()
	h := &hands{rolls: map[string][]string{"a": {"x", "y"}, "b": {"y", "z"}, "c": {"y", "w"}, "d": {"w"}}}
	h.run(t, adoption.Input{Providers: []string{"a", "b", "c", "d"}})
	require.Len(t, h.asked, 4)
	for _, in := range h.asked {
		require.Equal(t, []string{"w", "y"}, in.Contested)
	}
}

// claims are so many, from a number on.
func claims(from, many int) (roll []string) {
	for n := range many {
		roll = append(roll, fmt.Sprintf("%08d", from+n))
	}
	return roll
}

func TestARollOfManyPagesIsCalledToItsEnd(t *testing.T) {
	t.Parallel()
	const many = 2*activities.RollPage + 3
	for name, tc := range map[string]struct {
		whole  bool
		called []int
	}{
		"in pages":                         {false, []int{1, 3, activities.RollPage, activities.RollPage}},
		"as a whole, by workers of before": {true, []int{1, many, many}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			last := claims(many-1, 1)
			h := &hands{rolls: map[string][]string{"a": claims(0, many), "b": last}, whole: tc.whole}
			h.run(t, adoption.Input{})
			slices.Sort(h.called)
			require.Equal(t, tc.called, h.called)
			require.Len(t, h.asked, 2)
			require.Equal(t, last, h.asked[0].Contested, "which is on the last page")
		})
	}
}

func TestTwoProvidersOfTheSamePlaceAdoptNothing(t *testing.T) {
	t.Parallel()
	same := claims(0, activities.RollPage+1)
	h := &hands{rolls: map[string][]string{"a": same, "b": same}}
	r := h.run(t, adoption.Input{})
	require.Empty(t, h.asked)
	for _, p := range r.Providers {
		require.Contains(t, p.Fault.Text, "20001 claims are in the lists of more than one provider")
	}
	h = &hands{rolls: map[string][]string{"a": same[1:], "b": same[1:]}}
	h.run(t, adoption.Input{})
	require.Len(t, h.asked[0].Contested, activities.RollPage, "so many fit")
}

func TestOneThatCannotBeListedIsToldAndStallsNobody(t *testing.T) {
	t.Parallel()
	h := &hands{rolls: map[string][]string{"b": {"y"}}}
	r := h.run(t, adoption.Input{})
	require.Equal(t, "a", r.Providers[0].Provider)
	require.Contains(t, r.Providers[0].Fault.Text, "no route to host")
	require.Nil(t, r.Providers[1].Fault)
	require.Equal(t, []activities.AdoptInput{{Provider: "b"}}, h.asked)
	require.Contains(t, r.Markdown(), "skipped: ")
}

func TestAResultOfManyProvidersIsBounded(t *testing.T) {
	t.Parallel()
	const many, each = 10, 130 // as much as one report may hold, each
	h := &hands{rolls: map[string][]string{}}
	h.report = func(in activities.AdoptInput) (r activities.AdoptReport) {
		r.Provider = in.Provider
		for range each {
			r.Claims = append(r.Claims, activities.Claim{ID: "x", Proof: strings.Repeat("<", 200)})
		}
		return r
	}
	var names []string
	for i := range many {
		names = append(names, fmt.Sprintf("p%02d", i))
		h.rolls[names[i]] = []string{names[i]}
	}
	r := h.run(t, adoption.Input{Providers: names})
	raw, err := json.Marshal(r)
	require.NoError(t, err)
	require.Less(t, len(raw), 256<<10)
	told := 0
	for _, p := range r.Providers {
		told += len(p.Claims) + p.Unlisted
	}
	require.Equal(t, many*each, told)
	require.Less(t, len(r.Markdown()), 64<<10)
}
