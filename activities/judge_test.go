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
