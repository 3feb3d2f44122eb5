package feedback

import (
	"encoding/json"
	"fmt"
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
	same := append(many(2, "a", v1.ReportBanned, birth), many(2, "a", v1.ReportBanned, birth.Add(time.Second))...)
	for name, c := range map[string]struct {
		state *State
		at    time.Time
		want  []string
	}{
		"fewer domains than it takes":     {heard(birth, many(2, "a", v1.ReportBanned, birth)...), birth, nil},
		"the same domain counts once":     {heard(birth, same...), birth, nil},
		"captchas count as bans":          {heard(birth, append(many(2, "a", "banned", birth), report("a", "x.example", "captcha", birth))...), birth, []string{"replace a"}},
		"enough domains that ban":         {heard(birth, many(3, "a", v1.ReportBanned, birth)...), birth, []string{"replace a"}},
		"fewer that are slow":             {heard(birth, many(3, "a", v1.ReportSlow, birth)...), birth, nil},
		"timeouts and slowness add up":    {heard(birth, append(many(3, "a", "slow", birth), report("a", "x.example", "timeout", birth))...), birth, []string{"hold a"}},
		"bans and slowness do not":        {heard(birth, append(many(2, "a", "banned", birth), many(3, "a", "slow", birth)...)...), birth, nil},
		"what is too old counts no more":  {heard(birth, many(3, "a", v1.ReportBanned, birth)...), birth.Add(policy.Window + time.Second), nil},
		"what is just inside counts":      {heard(birth, many(3, "a", v1.ReportBanned, birth)...), birth.Add(policy.Window), []string{"replace a"}},
		"a replacement before a hold":     {heard(birth, append(many(9, "a", "slow", birth), many(3, "b", "banned", birth)...)...), birth, []string{"replace b", "hold a"}},
		"the worst first":                 {heard(birth, append(many(3, "a", "banned", birth), many(5, "b", "banned", birth)...)...), birth, []string{"replace b", "replace a"}},
		"a report from a clock ahead":     {heard(birth, many(3, "a", v1.ReportBanned, birth.Add(time.Hour))...), birth.Add(policy.Window + time.Second), nil},
		"what was acted upon cools down":  {acted(birth, birth.Add(cooldown-time.Second)), birth.Add(cooldown - time.Second), nil},
		"and may be acted upon after it":  {acted(birth, birth.Add(cooldown)), birth.Add(cooldown), []string{"replace a"}},
		"a threshold of nothing is never": {never(), birth, nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			require.Equal(t, c.want, names(c.state.charges(c.at)))
		})
	}
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
	s := heard(birth, report("a", "example.com", v1.ReportBanned, birth), report("a", "slow.example", v1.ReportSlow, birth))
	until := birth.Add(time.Hour).Unix()
	require.Equal(t, map[string]map[string]int64{"example.com": {"203.0.113.7": until}}, s.Bans)
	was := s.Revision
	s.absorb(birth, Batch{policy, []Report{report("a", "example.com", v1.ReportBanned, birth)}})
	require.Equal(t, was, s.Revision, "nothing is new")
	s.absorb(birth.Add(time.Minute), Batch{policy, []Report{report("a", "example.com", v1.ReportBanned, birth.Add(time.Minute))}})
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
			r := report(fmt.Sprintf("%063d", i*MaxBatch+j), fmt.Sprintf("%d-%d.%s.example", i, j, strings.Repeat("x", 60)), "banned", now)
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
