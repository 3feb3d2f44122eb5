package activities

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

var sweepTime = time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC)

func theBench() bench {
	return bench{
		installation: "prod", now: sweepTime, birth: sweepTime.Add(-24 * time.Hour), minAge: MinAge,
		living: map[string]bool{"alive": true},
	}
}

func old(uid string) suspect {
	return suspect{
		ID: "a/b", Kind: kindInstance, UID: uid, Installation: "prod", Owner: "default/a",
		CreatedAt: sweepTime.Add(-time.Hour),
	}
}

func TestWhatNeedsNoEvidence(t *testing.T) {
	t.Parallel()
	aged := func(d time.Duration) suspect { s := old("u"); s.CreatedAt = sweepTime.Add(-d); return s }
	hour := sweepTime.Add(-time.Hour)
	tests := map[string]struct {
		suspect suspect
		why     string // empty: evidence is needed
		doubt   bool
	}{
		"of another installation":   {suspect{UID: "u", Installation: "test"}, whyForeign, false},
		"of no installation":        {suspect{UID: "u"}, whyForeign, false},
		"without a UID":             {old(""), WhyNoUID, true},
		"9 min 59 s old":            {aged(9*time.Minute + 59*time.Second), whyYoung, false},
		"10 min old":                {aged(10 * time.Minute), "", false},
		"from the future":           {aged(-time.Hour), whyYoung, false},
		"of unknown age":            {suspect{UID: "u", Installation: "prod", Owner: "default/a"}, "", false},
		"of a listed proxy":         {old("alive"), whyListed, false},
		"of nobody, but listed":     {suspect{UID: "alive", Installation: "prod", CreatedAt: hour}, whyListed, false},
		"without an owner":          {suspect{UID: "u", Installation: "prod", CreatedAt: hour}, WhyNoOwner, true},
		"old, and of an owner":      {old("u"), "", false},
		"of a listed one of no age": {suspect{UID: "alive", Installation: "prod"}, whyListed, false},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r, acquitted := theBench().acquit(tc.suspect)
			require.Equal(t, tc.why != "", acquitted)
			require.Equal(t, tc.why, r.Why)
			require.Equal(t, tc.doubt, r.Doubt)
			require.False(t, r.Convict, "nothing is convicted without evidence")
		})
	}
}

func TestEvidence(t *testing.T) {
	t.Parallel()
	ancient, ageless := old("u"), old("u")
	ancient.CreatedAt, ageless.CreatedAt = sweepTime.Add(-48*time.Hour), time.Time{}
	b, recordless := theBench(), theBench()
	recordless.birth = time.Time{}
	skewed := old("u")
	skewed.CreatedAt = b.birth.Add(9 * time.Minute)
	wise := theBench()
	wise.unproven = true
	tests := map[string]struct {
		bench   bench
		suspect suspect
		owner   OwnerState
		why     string
		convict bool
	}{
		"runs with its UID":          {b, old("u"), OwnerState{Found: true, Running: true, UID: "u"}, whyRuns, false},
		"runs with another UID":      {b, old("u"), OwnerState{Found: true, Running: true, UID: "v"}, WhyOwnerReplaced, true},
		"runs and has said no UID":   {b, old("u"), OwnerState{Found: true, Running: true}, WhyNotPublished, false},
		"closed":                     {b, old("u"), OwnerState{Found: true, UID: "u", Ended: true}, WhyOwnerClosed, true},
		"used again, closed again":   {b, old("u"), OwnerState{Found: true, UID: "v", Ended: true}, WhyOwnerClosed, true},
		"another one closed":         {b, old("u"), OwnerState{Found: true, UID: "v"}, WhyOtherClosed, false},
		"closed, of unknown age":     {b, ageless, OwnerState{Found: true, UID: "u", Ended: true}, WhyOwnerClosed, true},
		"missing, and young":         {b, old("u"), OwnerState{}, WhyOwnerMissing, true},
		"missing, older than we are": {b, ancient, OwnerState{}, WhyAdoptable, false},
		"missing, of unknown age":    {b, ageless, OwnerState{}, WhyAdoptable, false},
		"missing, within the skew":   {b, skewed, OwnerState{}, WhyAdoptable, false},
		"missing, somebody knows":    {wise, ancient, OwnerState{}, WhyAdoptable, true},
		"another, somebody knows":    {wise, old("u"), OwnerState{Found: true, UID: "v"}, WhyOtherClosed, true},
		"no UID, somebody knows":     {wise, old("u"), OwnerState{Found: true, Running: true}, WhyNotPublished, false},
		"missing, and we know of no birth": {
			recordless, old("u"), OwnerState{}, WhyAdoptable, false,
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := tc.bench.judge(tc.suspect, tc.owner)
			require.Equal(t, tc.why, r.Why)
			require.Equal(t, tc.convict, r.Convict)
			require.Equal(t, !tc.convict && tc.why != whyRuns, r.Doubt, "what is not evidence is a doubt")
			require.Equal(t, r.Convict || r.Doubt, r.Proof != "")
		})
	}
}

func TestTheCap(t *testing.T) {
	t.Parallel()
	for listed, want := range map[int]int{0: 5, 3: 5, 50: 5, 59: 5, 60: 6, 1000: 100} {
		require.Equal(t, want, capOf(listed), "%d", listed)
	}
}

func TestRefusal(t *testing.T) {
	t.Parallel()
	type part struct {
		kind              string
		there, convicts   int
		otherInstallation bool
	}
	for name, tc := range map[string]struct {
		parts []part
		want  string // in the refusal
	}{
		"nothing":           {nil, ""},
		"five of five":      {[]part{{kindInstance, 5, 5, false}}, ""},
		"six of six":        {[]part{{kindInstance, 6, 6, false}}, "6 of 6 listed instances"},
		"a tenth":           {[]part{{kindInstance, 100, 10, false}}, ""},
		"more than a tenth": {[]part{{kindInstance, 100, 11, false}}, "11 of 100 listed instances"},
		"six leftovers":     {[]part{{"volume", 6, 6, false}}, "6 of 6 listed would"},
		"leftovers of many": {
			[]part{{kindInstance, 900, 0, false}, {"volume", 90, 90, false}}, "",
		},
		"leftovers raise nothing": {
			[]part{{kindInstance, 6, 6, false}, {"volume", 1000, 0, false}}, "6 of 6 listed instances",
		},
		"others raise nothing": {
			[]part{{kindInstance, 6, 6, false}, {kindInstance, 1000, 0, true}}, "6 of 6 listed instances",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var suspects []suspect
			var rulings []ruling
			for _, p := range tc.parts {
				for i := range p.there {
					r := ruling{Convict: i < p.convicts}
					if p.otherInstallation {
						r.Why = whyForeign
					}
					suspects, rulings = append(suspects, suspect{Kind: p.kind}), append(rulings, r)
				}
			}
			got := refusal(suspects, rulings)
			require.Contains(t, got, tc.want)
			require.Equal(t, tc.want == "", got == "")
		})
	}
}

func TestABudgetKeepsTheFirst(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		budget Budget
		want   int
	}{
		{Budget{Lines: 9, Bytes: 99}, 3},
		{Budget{Lines: 2, Bytes: 99}, 2},
		{Budget{Lines: 9, Bytes: 10}, 2},
		{Budget{}, 0},
	} {
		require.Len(t, Take(&tc.budget, []string{"aa", "bb", "cc"}), tc.want) // four bytes and a comma each
	}
	b := Budget{Lines: 9, Bytes: 6}
	require.Len(t, Take(&b, []string{"aa", "bb"}), 1)
	require.Empty(t, Take(&b, []string{""}), "nothing is told after something was left out")
}

func TestOmittedPlacesAreBounded(t *testing.T) {
	t.Parallel()
	require.Nil(t, someOf(nil))
	some := someOf(make([]string, 60))
	require.Len(t, some, 51)
	require.Equal(t, "and 10 more", some[50])
}
