package activities

import (
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/egressfleet/egressfleet/providers"
)

// What is the matter with an instance.
func ageless(e *evidence)   { e.instance.CreatedAt = time.Time{} }
func foreign(e *evidence)   { e.instance.Installation = "x" }
func nameless(e *evidence)  { e.instance.UID = "" }
func ownerless(e *evidence) { e.instance.Owner = "" }
func misnamed(e *evidence)  { e.instance.Owner = "A/b" }
func listedOne(e *evidence) { e.instance.UID = "living" }
func leaving(e *evidence)   { e.instance.Deleting = true }
func unread(e *evidence)    { e.unread = errors.New("spec mark") }
func contested(e *evidence) { e.rivals = "another" }

// What becomes of an instance, by its marks and by what primary storage says.
func TestCustody(t *testing.T) {
	t.Parallel()
	noon := time.Date(2026, 1, 31, 12, 0, 0, 0, time.UTC)
	young := func(e *evidence) { e.instance.CreatedAt = noon }
	none, starting := OwnerState{}, OwnerState{Found: true, Running: true}
	runs, other := OwnerState{Found: true, Running: true, UID: "u"}, OwnerState{Found: true, Running: true, UID: "v"}
	ended, otherEnded := OwnerState{Found: true, UID: "u", Ended: true}, OwnerState{Found: true, UID: "v"}
	for name, tc := range map[string]struct {
		change  func(*evidence)
		owner   OwnerState
		fault   error
		orphans bool
		want    fate
		why     string
	}{
		"older than the database":                 {nil, none, nil, false, fateAdopt, WhyAdoptable},
		"of an unknown age":                       {ageless, none, nil, false, fateAdopt, WhyAdoptable},
		"younger than the database":               {young, none, nil, false, fateOrphan, WhyOwnerMissing},
		"younger than the database, and wanted":   {young, none, nil, true, fateAdopt, WhyOwnerMissing},
		"of another installation":                 {foreign, none, nil, true, fateForeign, whyForeign},
		"without a UID":                           {nameless, none, nil, true, fateLeft, WhyNoUID},
		"without an owner":                        {ownerless, none, nil, true, fateLeft, WhyNoOwner},
		"an owner that is no name":                {misnamed, none, nil, true, fateLeft, WhyUnreadable},
		"Visibility lists its owner":              {listedOne, none, nil, true, fateLiving, whyListed},
		"its owner runs":                          {nil, runs, nil, true, fateLiving, whyRuns},
		"its owner runs, and it is being deleted": {leaving, runs, nil, true, fateLiving, whyRuns},
		"its owner was not taken up":              {nil, starting, nil, true, fateLeft, WhyNotPublished},
		"its owner runs with another UID":         {nil, other, nil, true, fateOrphan, WhyOwnerReplaced},
		"its owner has ended":                     {nil, ended, nil, false, fateOrphan, WhyOwnerClosed},
		"its owner has ended, and it is wanted":   {nil, ended, nil, true, fateAdopt, WhyOwnerClosed},
		"another one of its name has ended":       {nil, otherEnded, nil, false, fateOrphan, WhyOtherClosed},
		"another has ended, and it is wanted":     {nil, otherEnded, nil, true, fateAdopt, WhyOtherClosed},
		"Temporal does not answer":                {nil, none, errors.New("refused"), true, fateLeft, WhyNotAsked},
		"being deleted":                           {leaving, none, nil, true, fateLeaving, WhyBeingDeleted},
		"a spec that cannot be read":              {unread, none, nil, true, fateLeft, WhyUnreadable},
		"claimed twice":                           {contested, none, nil, true, fateLeft, WhyContested},
		"an orphan that is claimed twice":         {contested, ended, nil, true, fateLeft, WhyContested},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := bench{
				installation: "dev", now: noon, birth: noon.Add(-time.Hour), minAge: MinAge,
				living: map[string]bool{"living": true},
			}
			e := evidence{instance: providers.Instance{
				ID: "a/b", UID: "u", Owner: "default/a", Installation: "dev", CreatedAt: noon.Add(-24 * time.Hour),
			}}
			if tc.change != nil {
				tc.change(&e)
			}
			got, settled := b.claim(e)
			if !settled {
				got = b.custody(e, tc.owner, tc.fault, tc.orphans)
			}
			require.Equal(t, tc.want, got.fate)
			require.Equal(t, tc.why, got.why)
			if got.fate == fateLeft || got.fate == fateLeaving {
				require.NotEmpty(t, got.proof)
			}
		})
	}
}

func TestWhatIsClaimedTwice(t *testing.T) {
	t.Parallel()
	inst := func(uid, owner string) providers.Instance {
		return providers.Instance{UID: uid, Owner: owner, Installation: "dev"}
	}
	leaving, foreign := inst("u", "default/a"), inst("u", "default/a")
	leaving.Deleting, foreign.Installation = true, "another"
	for name, tc := range map[string]struct {
		others    []providers.Instance
		contested []string
		want      bool
	}{
		"nobody else":                         {nil, nil, false},
		"another one":                         {[]providers.Instance{inst("v", "default/b")}, nil, false},
		"one of the owner":                    {[]providers.Instance{inst("v", "default/a")}, nil, true},
		"one of the UID":                      {[]providers.Instance{inst("u", "default/b")}, nil, true},
		"two without marks":                   {[]providers.Instance{inst("", ""), inst("", "")}, nil, false},
		"one that is being deleted":           {[]providers.Instance{leaving}, nil, false},
		"one of another installation":         {[]providers.Instance{foreign}, nil, false},
		"one of the owner, elsewhere":         {nil, claimsOf(inst("", "default/a")), true},
		"one of the UID, elsewhere":           {nil, claimsOf(inst("u", "")), true},
		"another one elsewhere":               {nil, claimsOf(inst("v", "default/b")), false},
		"one whose owner is spelled as a UID": {[]providers.Instance{inst("default/a", "u")}, nil, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			it := inst("u", "default/a")
			claims := rivals(append(tc.others, it), "dev", tc.contested)
			require.Equal(t, tc.want, rivalsOf(it, claims) != "")
		})
	}
}
