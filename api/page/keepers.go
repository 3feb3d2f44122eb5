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

// NewOrphans shows what the last collection came to.
func NewOrphans(now time.Time, c v1.Collection) Orphans {
	o := Orphans{OrphansAt: momentOf(now, c.EndedAt), OrphansNext: momentOf(now, c.NextAt), Collected: c.Providers}
	switch {
	case c.Paused:
		o.OrphansState, o.OrphansNext = Badge{"paused", Warn}, Moment{}
	case c.EndedAt.IsZero():
		o.OrphansState = Badge{"no run has ended well yet", Off}
	case c.BeganAt.After(c.EndedAt) && now.Sub(c.BeganAt) < slack:
		o.OrphansState = Badge{"a run is under way, or failed", Wait}
	case c.BeganAt.After(c.EndedAt):
		o.OrphansState = Badge{"the last run failed", Bad}
	default:
		o.OrphansState = Badge{"ended well", Good}
	}
	return o
}
