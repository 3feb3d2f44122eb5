package page_test

import (
	"io"
	"net/url"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/egressfleet/egressfleet/api/page"
	v1 "github.com/egressfleet/egressfleet/api/v1"
)

var now = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

func proxy(name string, change func(*v1.Proxy)) v1.Proxy {
	p := v1.Proxy{
		Metadata: v1.Metadata{Namespace: "default", Name: name, Labels: map[string]string{"team": "Crawlers"}},
		Spec:     v1.ProxySpec{Provider: "gcp", Placement: v1.Placement{Zone: "europe-west1-b"}, Port: 3128},
		Status:   v1.ProxyStatus{Phase: v1.PhaseRunning, IP: "203.0.113.7", EgressIP: "198.51.100.9", ProviderID: "z/x"},
	}
	if change != nil {
		change(&p)
	}
	return p
}

// conditioned has one condition.
func conditioned(kind string, status v1.ConditionStatus, reason, message string) v1.Proxy {
	return proxy("a", func(p *v1.Proxy) {
		p.Status.SetCondition(now, v1.Condition{Type: kind, Status: status, Reason: reason, Message: message})
	})
}

// fleetOf is the page of some proxies under a filter.
func fleetOf(query string, all ...v1.Proxy) page.Fleet {
	values, _ := url.ParseQuery(query)
	return page.NewFleet(page.FleetInput{Now: now, AsOf: now, All: all, Found: len(all), Items: all, Query: values})
}

func TestTheLastErrorIsWhatSomebodyMayHaveToLookAt(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		proxy v1.Proxy
		want  string
	}{
		"nothing is known":           {proxy("a", nil), ""},
		"it was made":                {conditioned("Provisioned", "True", "Created", "with an address"), ""},
		"it is being made":           {conditioned("Provisioned", "False", "Provisioning", "soon"), ""},
		"it is being replaced":       {conditioned("Provisioned", "False", "Replacing", "soon"), ""},
		"no quota is left":           {conditioned("Provisioned", "False", "QuotaExceeded", "0"), "QuotaExceeded: 0"},
		"it says no more":            {conditioned("Provisioned", "False", "InstanceLost", ""), "InstanceLost"},
		"it refuses":                 {conditioned("Healthy", "False", "Refused", "403"), "Refused: 403"},
		"nobody knows":               {conditioned("Healthy", "Unknown", "Inconclusive", "the target is away"), ""},
		"it goes":                    {conditioned("Deleting", "True", "InProgress", ""), ""},
		"it goes, and is stuck":      {conditioned("Deleting", "True", "StuckDeleting", "30m"), "StuckDeleting: 30m"},
		"strangers may use it":       {conditioned("OpenProxy", "True", "OpenProxy", "yes"), "OpenProxy: yes"},
		"strangers may not":          {conditioned("OpenProxy", "False", "Closed", ""), ""},
		"somebody holds it":          {conditioned("Held", "True", "billing", ""), ""},
		"a condition of another day": {conditioned("Shiny", "False", "Dull", ""), ""},
	} {
		require.Equal(t, c.want, fleetOf("", c.proxy).Rows[0].Error, name)
	}
}

func TestARowIsReadable(t *testing.T) {
	t.Parallel()
	no := false
	row := fleetOf("", proxy("a", func(p *v1.Proxy) {
		p.Status.Healthy, p.Status.Held, p.Status.Phase = &no, true, v1.PhaseBlocked
		p.Status.Since, p.Status.NextAttemptAt = now.Add(-90*time.Minute), now.Add(20*time.Second)
	})).Rows[0]
	require.Equal(t, page.Row{
		Namespace: "default", Name: "a", Path: "/proxies/default/a", Provider: "gcp", Place: "europe-west1-b",
		Phase: page.Badge{Text: "Blocked", Tone: page.Bad}, Health: page.Badge{Text: "unhealthy", Tone: page.Bad},
		Held: true, Address: "203.0.113.7:3128",
		Since: page.Moment{At: "2026-01-02T01:34:05Z", Text: "1 h ago"},
		Next:  page.Moment{At: "2026-01-02T03:04:25Z", Text: "in 20 s"},
	}, row)
	six := fleetOf("", proxy("a", func(p *v1.Proxy) { p.Status.IP = "2001:db8::7" })).Rows[0]
	require.Equal(t, "[2001:db8::7]:3128", six.Address)
	require.Empty(t, fleetOf("", proxy("a", func(p *v1.Proxy) { p.Status.IP = "" })).Rows[0].Address)
}

func TestEveryPhaseHasATone(t *testing.T) {
	t.Parallel()
	want := map[v1.Phase]page.Tone{
		v1.PhasePending: page.Wait, v1.PhaseProvisioning: page.Wait, v1.PhaseRunning: page.Good,
		v1.PhaseReplacing: page.Warn, v1.PhaseBlocked: page.Bad, v1.PhaseDeleting: page.Off,
	}
	require.Len(t, want, len(v1.Phases()))
	for _, phase := range v1.Phases() {
		p := proxy("a", func(p *v1.Proxy) { p.Status.Phase = phase })
		require.Equal(t, page.Badge{Text: string(phase), Tone: want[phase]}, fleetOf("", p).Rows[0].Phase)
	}
}

func TestTimesAreSaidInTheirLargestUnit(t *testing.T) {
	t.Parallel()
	for since, want := range map[time.Duration]string{
		0: "now", 500 * time.Millisecond: "now", time.Second: "1 s ago", 59 * time.Second: "59 s ago",
		time.Minute: "1 min ago", 119 * time.Minute: "1 h ago", 47 * time.Hour: "1 d ago", 400 * 24 * time.Hour: "400 d ago",
		-time.Millisecond: "in 1 s", -90 * time.Second: "in 1 min",
	} {
		p := proxy("a", func(p *v1.Proxy) { p.Status.Since = now.Add(-since) })
		require.Equal(t, want, fleetOf("", p).Rows[0].Since.Text, since)
	}
	require.Equal(t, page.Moment{}, fleetOf("", proxy("a", nil)).Rows[0].Since)
}

func TestASearchFindsWhatHoldsEveryWord(t *testing.T) {
	t.Parallel()
	p := proxy("web-7", func(p *v1.Proxy) { p.Spec.CloudInit.Inline = "s3nt1nel" })
	for search, want := range map[string]bool{
		"": true, "  ": true, "web": true, "WEB-7": true, "default/web": true, "203.0.113.7:3128": true,
		"198.51": true, "team=crawlers": true, "gcp west1": true, "z/x": true, "running": true,
		"web nothing": false, "s3nt1nel": false, "gcpdefault": false,
	} {
		require.Equal(t, want, page.Matches(p, search), search)
	}
}

func TestFacetsCountAndToggle(t *testing.T) {
	t.Parallel()
	yes := true
	all := []v1.Proxy{
		proxy("a", func(p *v1.Proxy) { p.Status.Healthy = &yes }),
		proxy("b", func(p *v1.Proxy) { p.Status.Phase, p.Spec.Provider = v1.PhaseBlocked, "kvm" }),
		proxy("c", nil), proxy("d", nil),
	}
	f := fleetOf("phase=Running&q=x&continue=v1.abc", all...)
	running := f.Facets[0].Choices[2]
	require.Equal(t, page.Choice{
		Label: "Running", Value: "Running", Tone: page.Good, Count: 3, Chosen: true, URL: "/?q=x", X: "0.00", Width: "75.00",
	}, running)
	blocked := f.Facets[0].Choices[4]
	require.Equal(t, "/?phase=Blocked&q=x", blocked.URL, "it begins at the first part")
	require.Equal(t, "75.00", blocked.X)
	var healths, providers []int
	for _, c := range f.Facets[1].Choices {
		healths = append(healths, c.Count)
	}
	for _, c := range f.Facets[2].Choices {
		providers = append(providers, c.Count)
	}
	require.Equal(t, []int{1, 0, 3}, healths)
	require.Equal(t, []int{3, 1}, providers)
	require.Empty(t, fleetOf("").Facets[0].Choices[0].Width, "nothing is no part of nothing")
}

func TestThePageSaysHowMuchItShows(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		query, want string
		all         int
		found       int
	}{
		"none":                {"", "0 proxies", 0, 0},
		"one":                 {"", "1 proxy", 1, 1},
		"many":                {"", "2\u202f000 proxies", 2000, 2000},
		"some":                {"phase=Running", "7 of 2\u202f000 proxies", 2000, 7},
		"a part is no filter": {"continue=v1.x&live=off", "12 proxies", 12, 12},
	} {
		values, _ := url.ParseQuery(c.query)
		f := page.NewFleet(page.FleetInput{Now: now, All: make([]v1.Proxy, c.all), Found: c.found, Query: values})
		require.Equal(t, c.want, f.Count, name)
	}
}

func TestUpdatesCanBePaused(t *testing.T) {
	t.Parallel()
	f := fleetOf("phase=Running")
	require.True(t, f.Live)
	require.Equal(t, "/?live=off&phase=Running", f.Turn)
	f = fleetOf("phase=Running&live=off")
	require.False(t, f.Live)
	require.Equal(t, "/?phase=Running", f.Turn)
	require.Equal(t, "/?live=off", f.Reset)
}

func TestAQueryIsCleaned(t *testing.T) {
	t.Parallel()
	for raw, want := range map[string]string{
		"": "/", "q=&phase=": "/", "q=+x+&phase=": "/?q=x", "b=1&a=2": "/?a=2&b=1", "q=a%26b%3D%22": "/?q=a%26b%3D%22",
	} {
		values, err := url.ParseQuery(raw)
		require.NoError(t, err)
		_, address := page.Clean(values)
		require.Equal(t, want, address, raw)
	}
}

func TestACollectionIsJudged(t *testing.T) {
	t.Parallel()
	ago := func(d time.Duration) time.Time { return now.Add(-d) }
	for name, c := range map[string]struct {
		is   v1.Collection
		want page.Badge
		note string
	}{
		"well": {
			v1.Collection{BeganAt: ago(2 * time.Minute), EndedAt: ago(time.Minute), NextAt: ago(-time.Minute)},
			page.Badge{Text: "ended well", Tone: page.Good},
			"",
		},
		"under way": {
			v1.Collection{BeganAt: ago(time.Minute), EndedAt: ago(time.Hour)},
			page.Badge{Text: "a run is under way", Tone: page.Wait},
			"",
		},
		"out of time": {
			v1.Collection{BeganAt: ago(time.Hour), EndedAt: ago(2 * time.Hour)},
			page.Badge{Text: "the last run did not end in time", Tone: page.Bad},
			"",
		},
		"failed": {
			v1.Collection{BeganAt: ago(3 * time.Minute), EndedAt: ago(time.Hour), FailedAt: ago(time.Minute), Failure: "x"},
			page.Badge{Text: "the last run failed", Tone: page.Bad},
			"Why: x",
		},
		"refused": {
			v1.Collection{BeganAt: ago(3 * time.Minute), FailedAt: ago(2 * time.Minute), Failure: "x: many", Refused: true},
			page.Badge{Text: "the last run was refused", Tone: page.Bad},
			"starter gc run --force",
		},
		"refused, and the next one is under way": {
			v1.Collection{BeganAt: ago(time.Second), FailedAt: ago(2 * time.Minute), Refused: true},
			page.Badge{Text: "the last run was refused", Tone: page.Bad},
			"starter gc plan",
		},
		"refused, and paused": {
			v1.Collection{Paused: true, FailedAt: ago(2 * time.Minute), Refused: true},
			page.Badge{Text: "paused", Tone: page.Warn},
			"starter gc pause",
		},
		"paused": {
			v1.Collection{Paused: true, EndedAt: ago(time.Hour), NextAt: now}, page.Badge{Text: "paused", Tone: page.Warn}, "",
		},
		"the first is to come": {
			v1.Collection{NextAt: ago(-time.Minute)}, page.Badge{Text: "the first run is still to come", Tone: page.Off}, "",
		},
		"the first was due": {
			v1.Collection{NextAt: ago(time.Second)}, page.Badge{Text: "no run has ended well yet", Tone: page.Bad}, "",
		},
		"the first is under way": {
			v1.Collection{BeganAt: ago(time.Minute), NextAt: ago(-time.Minute)},
			page.Badge{Text: "the first run is under way", Tone: page.Wait},
			"",
		},
		"none": {
			v1.Collection{BeganAt: ago(time.Hour), NextAt: ago(-time.Minute)},
			page.Badge{Text: "no run has ended well yet", Tone: page.Bad},
			"",
		},
	} {
		shown := page.NewOrphans(now, c.is)
		require.Equal(t, c.want, shown.OrphansState, name)
		require.Contains(t, shown.OrphansNote, c.note, name)
		require.Equal(t, c.note == "", shown.OrphansNote == "", name)
	}
	require.Equal(t, "2 min ago", page.NewOrphans(now, v1.Collection{FailedAt: ago(2 * time.Minute)}).OrphansAt.Text)
	require.Empty(t, page.NewOrphans(now, v1.Collection{Paused: true, NextAt: now}).OrphansNext)
}

func TestChecksOfProvidersAreOneLineEach(t *testing.T) {
	t.Parallel()
	list := v1.ProviderList{
		Configuration: v1.ProviderConfiguration{State: v1.ConfigurationRetained, Error: "line 3"},
		Items: []v1.Provider{
			{Name: "a", Type: "gcp", Check: &v1.ProviderCheck{Supported: true, Unlisted: 2, Targets: []v1.ProviderTarget{
				{Target: "zone-1", Ready: true, Reason: "Ready", Details: map[string]string{"b": "2", "a": "1"}},
				{Target: "zone-2", Reason: "Full", Message: "no address"},
			}}},
			{Name: "b", Type: "local", Check: &v1.ProviderCheck{}},
			{Name: "c", Type: "kvm"},
		},
	}
	shown := page.NewProviders(now, list)
	require.Equal(t, "The providers file is not served as it is now: line 3", shown.ProvidersNote)
	require.Equal(t, []page.Check{
		{"a", "gcp", "zone-1", page.Badge{Text: "Ready", Tone: page.Good}, "a=1 b=2"},
		{"a", "gcp", "zone-2", page.Badge{Text: "Full", Tone: page.Bad}, "no address"},
		{"a", "gcp", "and 2 more", page.Badge{Text: "not listed", Tone: page.Off}, ""},
		{"b", "local", "", page.Badge{Text: "has no check", Tone: page.Off}, ""},
		{"c", "kvm", "", page.Badge{Text: "not checked yet", Tone: page.Off}, ""},
	}, shown.Checks)
}

func TestChecksThatAreStillToComeAreNoFault(t *testing.T) {
	t.Parallel()
	loaded := v1.ProviderConfiguration{State: v1.ConfigurationLoaded}
	for name, c := range map[string]struct {
		checks     v1.ProviderChecks
		soon, note string
	}{
		"to come": {
			v1.ProviderChecks{FirstAt: now.Add(40 * time.Second)}, "The first round of checks is still to come, in 40 s.", "",
		},
		"under way": {v1.ProviderChecks{FirstAt: now.Add(-time.Second)}, "The first round of checks is under way.", ""},
		"late":      {v1.ProviderChecks{Error: "no run"}, "", "no run"},
		"there":     {v1.ProviderChecks{CheckedAt: now}, "", ""},
	} {
		shown := page.NewProviders(now, v1.ProviderList{Configuration: loaded, Checks: c.checks})
		require.Equal(t, c.soon, shown.ProvidersSoon, name)
		require.Equal(t, c.note, shown.ProvidersNote, name)
	}
}

func TestThePageOfAProxyHasTheNewestFirst(t *testing.T) {
	t.Parallel()
	p := page.NewProxy(page.ProxyInput{
		Now: now, Done: "hold", Proxy: proxy("a", func(p *v1.Proxy) { p.Metadata.Generation = 2 }),
		Events: []v1.Event{{Reason: "Applied"}, {Reason: "Failed", Class: "Transient"}, {Reason: "Created"}},
	})
	var reasons []string
	for _, e := range p.Events {
		reasons = append(reasons, e.Reason)
	}
	require.Equal(t, []string{"Created", "Failed", "Applied"}, reasons)
	require.Equal(t, "Failed", p.LastError.Reason)
	require.Contains(t, p.Notice, "out of discovery")
	require.Contains(t, p.Facts, page.Fact{Label: "Generation", Value: "2 (the instance is of 0)"})
	require.Empty(t, page.NewProxy(page.ProxyInput{Done: "<b>anything"}).Notice)
}

func TestWhatCannotBeTakenBackIsAskedFor(t *testing.T) {
	t.Parallel()
	for action, asks := range map[string]bool{"delete": true, "replace": true, "hold": false, "resume": false, "": false} {
		_, got := page.NewAsk(page.Viewer{}, "default", "a", action, "K")
		require.Equal(t, asks, got, action)
	}
}

// views are one of each page.
func views() map[string]interface{ Write(w io.Writer) error } {
	ask, _ := page.NewAsk(page.Viewer{MayWrite: true}, "default", "a", "delete", "K")
	viewer := page.Viewer{MayWrite: true, Known: true, Who: "me"}
	held := proxy("a", func(p *v1.Proxy) { p.Status.Held = true })
	return map[string]interface{ Write(w io.Writer) error }{
		"fleet": fleetOf("", held), "nothing": fleetOf("phase=Running"), "ask": ask,
		"proxy": page.NewProxy(page.ProxyInput{Now: now, Proxy: held, Events: []v1.Event{{Reason: "x"}}, Viewer: viewer}),
		"held":  page.NewProxy(page.ProxyInput{Now: now, Proxy: proxy("b", nil), Viewer: viewer}),
		"sorry": page.NewSorry(viewer, 403, "Not allowed", "no"),
	}
}

var (
	control = regexp.MustCompile(`<(?:input|select)[^>]*>`)
	labeled = regexp.MustCompile(`<label for="([^"]+)"`)
	ids     = regexp.MustCompile(`\sid="([^"]+)"`)
)

func TestEveryPageHasWhatAssistiveTechnologyNeeds(t *testing.T) {
	t.Parallel()
	for name, view := range views() {
		var out strings.Builder
		require.NoError(t, view.Write(&out), name)
		html := out.String()
		require.Equal(t, 1, strings.Count(html, "<h1"), name)
		require.Equal(t, 1, strings.Count(html, "<main"), name)
		require.Contains(t, html, `<html lang="en">`, name)
		require.Contains(t, html, `class="skip" href="#main"`, name)
		require.NotContains(t, html, "<title> ", name)
		require.Equal(t, strings.Count(html, "<table"), strings.Count(html, "<caption"), name)
		labels, seen := map[string]bool{}, map[string]bool{}
		for _, l := range labeled.FindAllStringSubmatch(html, -1) {
			labels[l[1]] = true
		}
		for _, id := range ids.FindAllStringSubmatch(html, -1) {
			require.False(t, seen[id[1]], "%s: two have the id %s", name, id[1])
			seen[id[1]] = true
		}
		for _, c := range control.FindAllString(html, -1) {
			if strings.Contains(c, `type="hidden"`) {
				continue
			}
			require.True(t, labels[ids.FindStringSubmatch(c)[1]], "%s: %s has no label", name, c)
		}
	}
}
