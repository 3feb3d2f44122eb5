package page

import (
	"maps"
	"net/url"
	"slices"
	"strconv"
	"strings"

	v1 "github.com/egressfleet/egressfleet/api/v1"
)

// Facet counts the proxies by one thing, and links to each part.
type Facet struct {
	Title, Param string
	Choices      []Choice
}

// Choice is one part of a facet.
type Choice struct {
	Label, Value string
	Tone         Tone
	Count        int
	Chosen       bool
	URL          string // adds the choice to the filter, or takes it away
	X, Width     string // in a bar of 100
}

// facets are counts by phase, health and provider.
func facets(all []v1.Proxy, query url.Values) []Facet {
	phases, healths, providers := map[string]int{}, map[string]int{}, map[string]int{}
	for _, p := range all {
		phases[string(p.Status.Phase)]++
		healths[HealthOf(p)]++
		providers[p.Spec.Provider]++
	}
	f := []Facet{
		{Title: "Phase", Param: "phase"}, {Title: "Health", Param: "health"}, {Title: "Provider", Param: "provider"},
	}
	for _, phase := range v1.Phases() {
		f[0].add(Choice{Label: string(phase), Value: string(phase), Tone: phaseBadge(phase).Tone}, phases[string(phase)])
	}
	for _, h := range []Choice{
		{Label: healthy, Value: "true", Tone: Good},
		{Label: unhealthy, Value: "false", Tone: Bad},
		{Label: unknown, Value: "unknown", Tone: Off},
	} {
		f[1].add(h, healths[h.Value])
	}
	for _, name := range slices.Sorted(maps.Keys(providers)) {
		f[2].add(Choice{Label: name, Value: name, Tone: Wait}, providers[name])
	}
	for i := range f {
		f[i].finish(len(all), query)
	}
	return f
}

// HealthOf is the choice of the filter that a proxy fits: true, false or unknown.
func HealthOf(p v1.Proxy) string {
	if p.Status.Healthy == nil {
		return unknown
	}
	return strconv.FormatBool(*p.Status.Healthy)
}

func (f *Facet) add(c Choice, count int) {
	c.Count = count
	f.Choices = append(f.Choices, c)
}

// finish links and measures the choices.
func (f *Facet) finish(total int, query url.Values) {
	const whole = 100.0
	before := 0
	for i := range f.Choices {
		c := &f.Choices[i]
		c.Chosen = query.Get(f.Param) == c.Value
		value := c.Value
		if c.Chosen {
			value = ""
		}
		c.URL = with(query, f.Param, value)
		if total > 0 {
			c.X = strconv.FormatFloat(whole*float64(before)/float64(total), 'f', 2, 64)
			c.Width = strconv.FormatFloat(whole*float64(c.Count)/float64(total), 'f', 2, 64)
		}
		before += c.Count
	}
}

// with is the address of the table under another filter; no value is no filter. It
// begins at the first page.
func with(query url.Values, name, value string) string {
	next := maps.Clone(query)
	if next == nil {
		next = url.Values{}
	}
	next.Del("continue")
	if next.Del(name); value != "" {
		next.Set(name, value)
	}
	return addressWith(next)
}

func addressWith(query url.Values) string {
	if len(query) == 0 {
		return "/"
	}
	return "/?" + query.Encode()
}

// Clean is a query without what was left empty, and the address of the table that it is.
func Clean(query url.Values) (cleaned url.Values, address string) {
	cleaned = url.Values{}
	for name, values := range query {
		if value := strings.TrimSpace(values[0]); value != "" {
			cleaned.Set(name, value)
		}
	}
	return cleaned, addressWith(cleaned)
}

// Matches reports whether a proxy holds every word of a search, in its names, addresses,
// provider, place or labels.
func Matches(p v1.Proxy, search string) bool {
	words := strings.Fields(strings.ToLower(search))
	if len(words) == 0 {
		return true
	}
	parts := []string{
		p.Metadata.Namespace + "/" + p.Metadata.Name, p.Spec.Provider, p.Spec.Placement.Region, p.Spec.Placement.Zone,
		addressOf(p), p.Status.EgressIP, p.Status.ProviderID, string(p.Status.Phase),
	}
	for _, label := range slices.Sorted(maps.Keys(p.Metadata.Labels)) {
		parts = append(parts, label+"="+p.Metadata.Labels[label])
	}
	text := strings.ToLower(strings.Join(parts, "\n"))
	for _, word := range words {
		if !strings.Contains(text, word) {
			return false
		}
	}
	return true
}
