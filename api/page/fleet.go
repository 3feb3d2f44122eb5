package page

import (
	"maps"
	"net/url"
	"slices"
	"strconv"
	"time"

	v1 "github.com/egressfleet/egressfleet/api/v1"
)

// FleetInput is what the page of the fleet is made from.
type FleetInput struct {
	Viewer    Viewer
	Now, AsOf time.Time
	Stale     bool
	All       []v1.Proxy // that the viewer may see
	Found     int        // how many of them fit the filter
	Items     []v1.Proxy // the part of those that is shown
	Continue  string     // what the next part is asked for with; empty: there is none
	Query     url.Values // the filter, without empty values
	Workflow  func(namespace, name string) string
	Providers Providers
	Orphans   Orphans
}

// Fleet is the page of the fleet.
type Fleet struct {
	Viewer
	Title    string
	Address  string // of this very page
	Next     string // of the next part; empty: there is none
	First    string // of the first part; empty: this is it
	Reset    string
	Turn     string // of the same page that goes on by itself, or does not
	Live     bool
	Paused   bool // somebody stopped it
	Total    string
	Found    string
	Filtered bool
	Count    string // a sentence
	AsOf     string
	Stale    bool
	Facets   []Facet
	Controls []Control
	More     []Field
	Open     bool // more filters are in use
	Search   string
	Rows     []Row
	WebUI    bool
	Providers
	Orphans
}

// Control is one list of the filter.
type Control struct {
	ID, Label, Value string
	Choices          []Choice
}

// Field is one text of the filter.
type Field struct{ ID, Label, Value, Hint string }

// NewFleet is what the page of the fleet shows.
func NewFleet(in FleetInput) Fleet {
	f := Fleet{
		Viewer: in.Viewer, Title: "Fleet", Address: addressWith(in.Query), Reset: "/",
		Total: thousands(len(in.All)), Found: thousands(in.Found), Search: in.Query.Get("q"),
		AsOf: in.AsOf.UTC().Format("15:04:05 UTC"), Stale: in.Stale, Facets: facets(in.All, in.Query),
		Paused: in.Query.Get("live") == "off", Providers: in.Providers, Orphans: in.Orphans, WebUI: in.Workflow != nil,
	}
	f.Live = !f.Paused
	f.Turn = with(in.Query, "live", "off")
	if f.Paused {
		f.Turn = with(in.Query, "live", "")
		f.Reset = "/?live=off"
	}
	f.pages(in)
	f.filter(in)
	for _, p := range in.Items {
		f.Rows = append(f.Rows, rowOf(in.Now, p, in.Workflow))
	}
	f.Count = count(in.Found, len(in.All), f.Filtered)
	return f
}

// pages links to the parts of the table.
func (f *Fleet) pages(in FleetInput) {
	if in.Continue != "" {
		next := maps.Clone(in.Query)
		next.Set("continue", in.Continue)
		f.Next = addressWith(next)
	}
	if in.Query.Has("continue") {
		f.First = with(in.Query, "continue", "")
	}
}

// filter fills the form.
func (f *Fleet) filter(in FleetInput) {
	namespaces := map[string]bool{}
	for _, p := range in.All {
		namespaces[p.Metadata.Namespace] = true
	}
	f.Controls = append(f.Controls, Control{ID: "namespace", Label: "Namespace", Value: in.Query.Get("namespace")})
	for _, name := range slices.Sorted(maps.Keys(namespaces)) {
		f.Controls[0].Choices = append(f.Controls[0].Choices, Choice{
			Label: name, Value: name, Chosen: name == f.Controls[0].Value,
		})
	}
	for _, facet := range f.Facets {
		f.Controls = append(f.Controls, Control{facet.Param, facet.Title, in.Query.Get(facet.Param), facet.Choices})
	}
	f.More = []Field{
		{"labels", "Labels", in.Query.Get("labels"), "team=crawlers,tier in (gold)"},
		{"region", "Region", in.Query.Get("region"), "europe-west1"},
		{"reason", "Reason", in.Query.Get("reason"), "QuotaExceeded"},
	}
	for _, field := range f.More {
		f.Open = f.Open || field.Value != ""
	}
	for name := range in.Query {
		f.Filtered = f.Filtered || !slices.Contains([]string{"continue", "live", "limit"}, name)
	}
}

// count is what a screen reader is told when the table changes.
func count(found, total int, filtered bool) string {
	noun := " proxies"
	if total == 1 {
		noun = " proxy"
	}
	if !filtered {
		return thousands(total) + noun
	}
	return thousands(found) + " of " + thousands(total) + noun
}

// thousands writes a number so that it can be read.
func thousands(n int) string {
	text := strconv.Itoa(n)
	for i := len(text) - 3; i > 0; i -= 3 {
		text = text[:i] + "\u202f" + text[i:] // a narrow space, which no line breaks at
	}
	return text
}
