package feedback

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/egressfleet/egressfleet/activities"
	v1 "github.com/egressfleet/egressfleet/api/v1"
)

var (
	birth  = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	policy = Policy{
		BanFor: time.Hour, Window: 15 * time.Minute, Replace: 3, Hold: 4, HoldFor: 5 * time.Minute, Budget: 2, Floor: 80,
	}
)

func accused(name string) activities.Accused {
	return activities.Accused{Provider: "gcp", Namespace: "default", Name: name, UID: "uid-" + name, MadeAt: birth}
}

func TestDecide(t *testing.T) {
	t.Parallel()
	const hold, replace = activities.FeedbackHold, activities.FeedbackReplace
	plenty := activities.Standing{Total: 10, Usable: 10}
	for name, c := range map[string]struct {
		do      string
		facts   facts
		refused string
	}{
		"a ban by enough replaces":                  {replace, facts{Standing: plenty, There: true}, ""},
		"a slow one is held":                        {hold, facts{Standing: plenty, There: true}, ""},
		"the last of the budget is spent":           {replace, facts{Spent: 1, Standing: plenty, There: true}, ""},
		"a budget that is used up refuses":          {replace, facts{Spent: 2, Standing: plenty, There: true}, "budget"},
		"and refuses a hold":                        {hold, facts{Spent: 2, Standing: plenty, There: true}, "budget"},
		"another instance is left alone":            {replace, facts{Standing: plenty}, "gone"},
		"also where the budget is used up":          {replace, facts{Spent: 2, Standing: plenty}, "gone"},
		"what leaves just the floor is done":        {hold, facts{Standing: standing(10, 9), There: true}, ""},
		"what leaves less than the floor is not":    {hold, facts{Standing: standing(10, 8), There: true}, "floor"},
		"a part of a proxy is a whole one":          {hold, facts{Standing: standing(11, 9), There: true}, "floor"},
		"of four, 80 percent are all":               {replace, facts{Standing: standing(4, 4), There: true}, "floor"},
		"of five, one may go":                       {replace, facts{Standing: standing(5, 5), There: true}, ""},
		"one alone never goes":                      {replace, facts{Standing: standing(1, 1), There: true}, "floor"},
		"nothing is known of the provider":          {replace, facts{There: true}, "floor"},
		"without a percentage, one has to stay":     {replace, facts{Standing: standing(2, 1), There: true}, "floor"},
		"of proxies that are unhealthy, none goes":  {hold, facts{Standing: standing(10, 2), There: true}, "floor"},
		"a floor of everything lets nothing happen": {hold, facts{Standing: plenty, There: true}, "floor"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c.facts.Policy = policy
			switch name {
			case "without a percentage, one has to stay":
				c.facts.Policy.Floor = 0
			case "a floor of everything lets nothing happen":
				c.facts.Policy.Floor = 100
			}
			v := decide(charge{accused("a"), c.do, 3}, c.facts)
			require.Equal(t, c.refused, v.Refused)
			require.Equal(t, c.do, v.Do)
			require.Equal(t, c.refused == "", v.Reason != "")
			if c.refused == "" && c.do == hold {
				require.Equal(t, v1.Duration("5m0s"), v.For)
			}
		})
	}
}

func standing(total, usable int) activities.Standing {
	return activities.Standing{Total: total, Usable: usable}
}

func report(name, domain string, kind v1.ReportKind, at time.Time) Report {
	a := accused(name)
	return Report{
		Provider: a.Provider, Namespace: a.Namespace, Name: name, UID: a.UID, MadeAt: a.MadeAt,
		EgressIP: "203.0.113.7", Domain: domain, Kind: kind, At: at,
	}
}

// many are reports of so many domains.
func many(n int, name string, kind v1.ReportKind, at time.Time) (all []Report) {
	for i := range n {
		all = append(all, report(name, fmt.Sprintf("site-%d.example", i), kind, at))
	}
	return all
}

func heard(now time.Time, reports ...Report) *State {
	s := &State{}
	s.absorb(now, Batch{policy, reports})
	return s
}

func names(all []charge) (names []string) {
	for _, s := range all {
		names = append(names, s.Do+" "+s.Name)
	}
	return names
}

func TestCharges(t *testing.T) {
	t.Parallel()
	const replace, hold = "replace a", "hold a"
	bans := func(n int, name string) []Report { return many(n, name, v1.ReportBanned, birth) }
	slow := func(n int, name string) []Report { return many(n, name, v1.ReportSlow, birth) }
	one := func(kind v1.ReportKind) []Report { return []Report{report("a", "x.example", kind, birth)} }
	both := slices.Concat[[]Report]
	again := many(2, "a", v1.ReportBanned, birth.Add(time.Second))
	ahead := many(3, "a", v1.ReportBanned, birth.Add(time.Hour))
	end := policy.Window
	for name, c := range map[string]struct {
		heard []Report
		after time.Duration
		want  []string
	}{
		"fewer domains than it takes":    {bans(2, "a"), 0, nil},
		"the same domain counts once":    {both(bans(2, "a"), again), 0, nil},
		"captchas count as bans":         {both(bans(2, "a"), one(v1.ReportCaptcha)), 0, []string{replace}},
		"enough domains that ban":        {bans(3, "a"), 0, []string{replace}},
		"fewer that are slow":            {slow(3, "a"), 0, nil},
		"timeouts and slowness add up":   {both(slow(3, "a"), one(v1.ReportTimeout)), 0, []string{hold}},
		"bans and slowness do not":       {both(bans(2, "a"), slow(3, "a")), 0, nil},
		"what is too old counts no more": {bans(3, "a"), end + time.Second, nil},
		"what is just inside counts":     {bans(3, "a"), end, []string{replace}},
		"a replacement before a hold":    {both(slow(9, "a"), bans(3, "b")), 0, []string{"replace b", hold}},
		"the worst first":                {both(bans(3, "a"), bans(5, "b")), 0, []string{"replace b", replace}},
		"a report from a clock ahead":    {ahead, end + time.Second, nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			require.Equal(t, c.want, names(heard(birth, c.heard...).charges(birth.Add(c.after))))
		})
	}
}

func TestWhatWasActedUponCoolsDown(t *testing.T) {
	t.Parallel()
	for after, want := range map[time.Duration]int{cooldown - time.Second: 0, cooldown: 1} {
		require.Len(t, acted(birth, birth.Add(after)).charges(birth.Add(after)), want, after)
	}
}

func TestAThresholdOfNothingIsNever(t *testing.T) {
	t.Parallel()
	require.Empty(t, never().charges(birth))
}

// acted is a proxy that something was done about, and that is reported again later.
func acted(at, later time.Time) *State {
	s := heard(later, many(3, "a", v1.ReportBanned, later)...)
	s.Acts = []Act{{"gcp", "default/a", at}}
	return s
}

func never() *State {
	p := policy
	p.Replace, p.Hold = 0, 0
	s := &State{}
	s.absorb(birth, Batch{p, append(many(9, "a", "banned", birth), many(9, "a", "slow", birth)...)})
	return s
}

func TestAWaveOfReportsTakesDownNoMoreThanBudgetAndFloorAllow(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ total, budget, done int }{
		"the floor holds":            {10, 60, 2},
		"the budget holds":           {100, 6, 6},
		"a small provider loses one": {5, 60, 1},
		"a tiny one loses none":      {4, 60, 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := &State{}
			p := policy
			p.Budget = c.budget
			is := activities.FeedbackStandings{Providers: map[string]activities.Standing{"gcp": standing(c.total, c.total)}}
			for i := range c.total {
				name := fmt.Sprintf("p%02d", i)
				s.absorb(birth, Batch{p, many(3, name, v1.ReportBanned, birth)})
				is.There = append(is.There, "default/"+name)
			}
			done := 0
			for range 5 { // more looks find the same listing, and the same wave
				for _, v := range s.judge(birth, s.charges(birth), is) {
					if v.Refused == "" {
						done++
					}
				}
			}
			require.Equal(t, c.done, done)
			require.Len(t, s.leaving(birth), c.done)
		})
	}
}

func TestARefusalIsToldOnceAndWhatIsGoneIsForgotten(t *testing.T) {
	t.Parallel()
	s := heard(birth, many(3, "a", v1.ReportBanned, birth)...)
	is := activities.FeedbackStandings{
		Providers: map[string]activities.Standing{"gcp": standing(1, 1)}, There: []string{"default/a"},
	}
	told := s.judge(birth, s.charges(birth), is)
	require.Len(t, told, 1)
	require.Equal(t, "floor", told[0].Refused)
	require.Empty(t, s.judge(birth, s.charges(birth), is))
	require.Empty(t, s.Acts)
	is.There = nil
	require.Empty(t, s.judge(birth, s.charges(birth), is))
	require.Empty(t, s.Cases)
	require.NotEmpty(t, s.Bans, "a ban is of an address, not of an instance")
}

func TestAReportOfTheInstanceBeforeChangesNothingForTheNewOne(t *testing.T) {
	t.Parallel()
	s := heard(birth, many(2, "a", v1.ReportBanned, birth)...)
	newer := report("a", "new.example", v1.ReportBanned, birth)
	newer.MadeAt = birth.Add(time.Minute)
	late := report("a", "late.example", v1.ReportBanned, birth)
	s.absorb(birth, Batch{policy, []Report{newer, late}})
	require.Len(t, s.Cases["default/a"].Bans, 1)
	require.True(t, s.Cases["default/a"].MadeAt.Equal(newer.MadeAt))
}

func TestBansEndAndCarryARevision(t *testing.T) {
	t.Parallel()
	ban := report("a", "example.com", v1.ReportBanned, birth)
	s := heard(birth, ban, report("a", "slow.example", v1.ReportSlow, birth))
	until := birth.Add(time.Hour).Unix()
	require.Equal(t, map[string]map[string]int64{"example.com": {"203.0.113.7": until}}, s.Bans)
	was := s.Revision
	s.absorb(birth, Batch{policy, []Report{ban}})
	require.Equal(t, was, s.Revision, "nothing is new")
	ban.At = birth.Add(time.Minute)
	s.absorb(ban.At, Batch{policy, []Report{ban}})
	require.Equal(t, until+60, s.Bans["example.com"]["203.0.113.7"])
	require.Greater(t, s.Revision, was)
	was = s.Revision
	s.absorb(birth.Add(time.Hour+time.Minute), Batch{Policy: policy})
	require.Empty(t, s.Bans)
	require.Empty(t, s.Cases)
	require.Greater(t, s.Revision, was)
}

func TestTheStateStaysBelowWhatAPayloadMayBe(t *testing.T) {
	t.Parallel()
	s := &State{}
	now := birth
	for i := range 60 {
		var b Batch
		b.Policy = policy
		for j := range MaxBatch {
			site := fmt.Sprintf("%d-%d.%s.example", i, j, strings.Repeat("x", 60))
			r := report(fmt.Sprintf("%063d", i*MaxBatch+j), site, v1.ReportBanned, now)
			r.Namespace, r.UID = strings.Repeat("n", 63), strings.Repeat("u", 36)
			r.EgressIP = fmt.Sprintf("2001:db8:1111:2222:3333:4444:%x:%x", i, j)
			b.Reports = append(b.Reports, r)
		}
		raw, err := json.Marshal(b)
		require.NoError(t, err)
		require.Less(t, len(raw), 200<<10)
		now = now.Add(time.Second)
		s.absorb(now, b)
	}
	for i := range 3 * actsKept {
		s.Acts = append(s.Acts, Act{"gcp", fmt.Sprintf("default/%d", i), now})
	}
	s.absorb(now, Batch{Policy: policy})
	raw, err := json.Marshal(s)
	require.NoError(t, err)
	require.Less(t, len(raw), 200<<10)
	require.Positive(t, s.Dropped)
	require.Contains(t, s.Bans, "59-0."+strings.Repeat("x", 60)+".example", "the newest stay")
	require.NotContains(t, s.Bans, "0-0."+strings.Repeat("x", 60)+".example")
	require.Len(t, s.Acts, actsKept)
}

func TestAPolicyIsKeptWithinItsBounds(t *testing.T) {
	t.Parallel()
	require.Equal(t, policy, policy.bounded())
	got := Policy{BanFor: 9999 * time.Hour, Replace: 9999, Hold: -1, Budget: 9999, Floor: 101}.bounded()
	require.Equal(t, Policy{
		BanFor: MaxBan, Window: time.Minute, Replace: MaxThreshold, HoldFor: time.Minute, Budget: MaxBudget, Floor: 100,
	}, got)
}
