package page

import (
	"maps"
	"slices"
	"strings"
	"time"

	v1 "github.com/egressfleet/egressfleet/api/v1"
)

// Providers is the part of the page about the checks of providers.
type Providers struct {
	ProvidersNote string // why there is less to see
	ProvidersSoon string // why there is nothing to see yet
	CheckedAt     Moment
	Checks        []Check
}

// Check is one thing at a backend that has to answer, or a provider without such.
type Check struct {
	Provider, Type, Target string
	State                  Badge
	Says                   string
}

// NewProviders shows what the last round of checks found.
func NewProviders(now time.Time, list v1.ProviderList) Providers {
	p := Providers{CheckedAt: momentOf(now, list.Checks.CheckedAt), ProvidersNote: list.Checks.Error}
	if list.Configuration.State != v1.ConfigurationLoaded {
		p.ProvidersNote = strings.TrimSpace("The providers file is not served as it is now: " + list.Configuration.Error)
	}
	if first := list.Checks.FirstAt; !first.IsZero() {
		p.ProvidersSoon = firstRun(now, first)
	}
	for _, provider := range list.Items {
		p.Checks = append(p.Checks, checksOf(provider)...)
	}
	return p
}

func checksOf(p v1.Provider) (all []Check) {
	switch {
	case p.Check == nil:
		return []Check{{p.Name, p.Type, "", Badge{"not checked yet", Off}, ""}}
	case !p.Check.Supported:
		return []Check{{p.Name, p.Type, "", Badge{"has no check", Off}, ""}}
	}
	for _, t := range p.Check.Targets {
		c := Check{p.Name, p.Type, t.Target, Badge{t.Reason, Bad}, t.Message}
		if t.Ready {
			c.State.Tone = Good
		}
		for _, name := range slices.Sorted(maps.Keys(t.Details)) {
			c.Says = strings.TrimSpace(c.Says + " " + name + "=" + t.Details[name])
		}
		all = append(all, c)
	}
	if p.Check.Unlisted > 0 {
		all = append(all, Check{p.Name, p.Type, "and " + thousands(p.Check.Unlisted) + " more", Badge{"not listed", Off}, ""})
	}
	return all
}

// firstRun says when the first round of checks comes.
func firstRun(now, at time.Time) string {
	if at.After(now) {
		return "The first round of checks is still to come, " + momentOf(now, at).Text + "."
	}
	return "The first round of checks is under way."
}

// Orphans is the part of the page about the collection of orphans.
type Orphans struct {
	OrphansNote  string // why there is less to see
	OrphansAt    Moment
	OrphansNext  Moment
	OrphansState Badge
	Collected    []v1.Collected
}

// slack is how much later than its beginning a run that ended well ends at most.
const slack = 30 * time.Minute

// refusedHelp is what to do about a collection that was refused.
const refusedHelp = "It found more than can be right, and deleted nothing where that is said below. Look at the " +
	"proofs with “starter gc plan”. Where they are right, “starter gc run --force” deletes them; where they are not, " +
	"stop it with “starter gc pause”, and see whether the worker talks to the right Temporal namespace."

// NewOrphans shows what the last collection came to.
func NewOrphans(now time.Time, c v1.Collection) Orphans {
	o := Orphans{
		OrphansAt: momentOf(now, later(c.EndedAt, c.FailedAt)), OrphansNext: momentOf(now, c.NextAt),
		OrphansState: orphansState(now, c), Collected: c.Providers,
	}
	if c.Paused {
		o.OrphansNext = Moment{}
	}
	switch {
	case c.Refused:
		o.OrphansNote = refusedHelp
	case !c.FailedAt.IsZero():
		o.OrphansNote = "Why: " + c.Failure
	}
	return o
}

// orphansState is the collection in a few words.
func orphansState(now time.Time, c v1.Collection) Badge {
	switch {
	case c.Paused:
		return Badge{"paused", Warn}
	case c.Refused:
		return Badge{"the last run was refused", Bad}
	case !c.FailedAt.IsZero():
		return Badge{"the last run failed", Bad}
	case c.EndedAt.IsZero():
		return firstState(now, c)
	case !c.BeganAt.After(c.EndedAt):
		return Badge{"ended well", Good}
	case now.Sub(c.BeganAt) < slack:
		return Badge{"a run is under way", Wait}
	default:
		return Badge{"the last run did not end in time", Bad}
	}
}

// firstState is a collection of which no run has ended.
func firstState(now time.Time, c v1.Collection) Badge {
	switch {
	case c.BeganAt.IsZero() && c.NextAt.After(now):
		return Badge{"the first run is still to come", Off}
	case !c.BeganAt.IsZero() && now.Sub(c.BeganAt) < slack:
		return Badge{"the first run is under way", Wait}
	default:
		return Badge{"no run has ended well yet", Bad}
	}
}

func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}
