package feedback

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"go.temporal.io/sdk/workflow"

	"github.com/egressfleet/egressfleet/activities"
	v1 "github.com/egressfleet/egressfleet/api/v1"
)

const (
	// cooldown is how long a proxy that was acted upon is left alone.
	cooldown = 30 * time.Minute
	// unseen is how long the listing of proxies may not show yet what was asked of one.
	unseen = 2 * time.Minute
	// chargesAtOnce bounds one look.
	chargesAtOnce = 50
)

// charge is a proxy over a threshold, and what that would lead to.
type charge struct {
	activities.Accused
	Do      string
	Domains int
}

// charges are the proxies over a threshold, the worst first. It is pure.
func (s *State) charges(now time.Time) []charge {
	var found []charge
	from := now.Add(-s.Policy.Window).Unix()
	for _, name := range workflow.DeterministicKeys(s.Cases) {
		c := s.Cases[name]
		if s.actedSince(name, now.Add(-cooldown)) {
			continue
		}
		banned, slow := count(c.Bans, from), count(c.Slow, from)
		switch {
		case s.Policy.Replace > 0 && banned >= s.Policy.Replace:
			found = append(found, charge{c.Accused, activities.FeedbackReplace, banned})
		case s.Policy.Hold > 0 && slow >= s.Policy.Hold:
			found = append(found, charge{c.Accused, activities.FeedbackHold, slow})
		}
	}
	slices.SortStableFunc(found, func(a, b charge) int {
		return cmp.Or(strings.Compare(b.Do, a.Do), cmp.Compare(b.Domains, a.Domains)) // replace before hold
	})
	return found[:min(len(found), chargesAtOnce)]
}

func count(seen map[string]int64, from int64) (n int) {
	for _, key := range workflow.DeterministicKeys(seen) {
		if seen[key] >= from {
			n++
		}
	}
	return n
}

func (s *State) actedSince(proxy string, from time.Time) bool {
	return slices.ContainsFunc(s.Acts, func(a Act) bool { return a.Proxy == proxy && a.At.After(from) })
}

// spent is how much of a provider's budget is used up.
func (s *State) spent(provider string, now time.Time) (n int) {
	for _, a := range s.Acts {
		if a.Provider == provider && now.Sub(a.At) < budgetSpan {
			n++
		}
	}
	return n
}

// leaving are the proxies that may still be listed as if nothing had been asked of them.
func (s *State) leaving(now time.Time) (names []string) {
	for _, a := range s.Acts {
		if now.Sub(a.At) < unseen {
			names = append(names, a.Proxy)
		}
	}
	return names
}

// facts are what a charge is judged by.
type facts struct {
	Policy   Policy
	Spent    int // of the provider's budget
	Standing activities.Standing
	// There says that the instance is the accused one, and that clients may use it.
	There bool
}

// decide says what becomes of a charge. It is pure.
func decide(s charge, f facts) activities.FeedbackVerdict {
	v := activities.FeedbackVerdict{Accused: s.Accused, Do: s.Do, Domains: s.Domains}
	switch {
	case !f.There:
		v.Refused = activities.RefusedGone
	case f.Spent >= f.Policy.Budget:
		v.Refused = activities.RefusedBudget
	case f.Standing.Usable-1 < floorOf(f.Standing.Total, f.Policy.Floor):
		v.Refused = activities.RefusedFloor
	case s.Do == activities.FeedbackHold:
		v.For = v1.Duration(f.Policy.HoldFor.String())
		v.Reason = fmt.Sprintf("feedback: timed out or slow on %d domains", s.Domains)
	default:
		v.Reason = fmt.Sprintf("feedback: banned or asked for a captcha by %d domains", s.Domains)
	}
	return v
}

// floorOf is how many of a provider's proxies have to stay usable: never none.
func floorOf(total, percent int) int { return max(1, (total*percent+99)/100) }

// judge decides about every charge in its turn: what one is granted is gone for the
// next. It is pure apart from s, which remembers it.
func (s *State) judge(now time.Time, charges []charge, is activities.FeedbackStandings) []activities.FeedbackVerdict {
	var news []activities.FeedbackVerdict
	for _, one := range charges {
		standing := is.Providers[one.Provider]
		v := decide(one, facts{s.Policy, s.spent(one.Provider, now), standing, slices.Contains(is.There, one.Key())})
		c := s.Cases[one.Key()]
		switch v.Refused {
		case "":
			standing.Usable--
			is.Providers[one.Provider] = standing
			s.Acts = append(s.Acts, Act{one.Provider, one.Key(), now})
			delete(s.Cases, one.Key())
		case activities.RefusedGone:
			delete(s.Cases, one.Key())
			continue
		case c.Refused:
			continue // told before
		default:
			c.Refused = v.Refused
			s.Cases[one.Key()] = c
		}
		news = append(news, v)
	}
	return news
}
