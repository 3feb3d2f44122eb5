package discovery_test

import (
	"encoding/csv"
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/egressfleet/egressfleet/api/discovery"
	v1 "github.com/egressfleet/egressfleet/api/v1"
)

var noon = time.Date(2026, 1, 2, 12, 0, 0, 0, time.FixedZone("CET", 3600))

func proxy(namespace, name, ip string) v1.Proxy {
	return v1.Proxy{
		Metadata: v1.Metadata{Namespace: namespace, Name: name, UID: "u"},
		Spec:     v1.ProxySpec{Provider: "local", Port: 3128},
		Status:   v1.ProxyStatus{Phase: v1.PhaseRunning, IP: ip},
	}
}

func TestOnlyWhatClientsMayUseIsListed(t *testing.T) {
	t.Parallel()
	yes, no := true, false
	for name, of := range map[string]struct {
		change func(*v1.Proxy)
		listed bool
	}{
		"running, not yet probed":    {func(*v1.Proxy) {}, true},
		"running and healthy":        {func(p *v1.Proxy) { p.Status.Healthy = &yes }, true},
		"running and unhealthy":      {func(p *v1.Proxy) { p.Status.Healthy = &no }, false},
		"held":                       {func(p *v1.Proxy) { p.Status.Held = true }, false},
		"running without an address": {func(p *v1.Proxy) { p.Status.IP = "" }, false},
		"pending":                    {func(p *v1.Proxy) { p.Status.Phase = v1.PhasePending }, false},
		"provisioning":               {func(p *v1.Proxy) { p.Status.Phase = v1.PhaseProvisioning }, false},
		"replacing":                  {func(p *v1.Proxy) { p.Status.Phase = v1.PhaseReplacing }, false},
		"blocked":                    {func(p *v1.Proxy) { p.Status.Phase = v1.PhaseBlocked }, false},
		"deleting":                   {func(p *v1.Proxy) { p.Status.Phase = v1.PhaseDeleting }, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := proxy("default", "a", "203.0.113.7")
			of.change(&p)
			endpoints := discovery.Part(discovery.Endpoints([]v1.Proxy{p}), discovery.Filter{}.Keeps)
			require.NotNil(t, endpoints)
			require.Equal(t, of.listed, len(endpoints) == 1)
		})
	}
}

func TestEndpointsAreSorted(t *testing.T) {
	t.Parallel()
	var got []string
	for _, e := range discovery.Endpoints([]v1.Proxy{
		proxy("b", "a", "203.0.113.1"), proxy("a", "b", "203.0.113.2"), proxy("a", "a", "203.0.113.3"),
	}) {
		got = append(got, e.IP)
	}
	require.Equal(t, []string{"203.0.113.3", "203.0.113.2", "203.0.113.1"}, got)
}

func TestTheTextIsOneURLALine(t *testing.T) {
	t.Parallel()
	list := v1.Discovery{Proxies: discovery.Endpoints([]v1.Proxy{
		proxy("a", "a", "203.0.113.7"), proxy("a", "b", "2001:db8::7"),
	})}
	document, err := discovery.Render(discovery.Text, list)
	require.NoError(t, err)
	require.Equal(t, "http://203.0.113.7:3128\nhttp://[2001:db8::7]:3128\n", string(document.Body))
	require.Equal(t, "text/plain; charset=utf-8", document.ContentType)
}

func TestAnEmptyListIsAnAnswerInEveryFormat(t *testing.T) {
	t.Parallel()
	wanted := map[discovery.Format]string{
		discovery.JSON:       `{"version":"v1","generatedAt":"2026-01-02T11:00:00Z","stale":false,"proxies":[]}` + "\n",
		discovery.Text:       "",
		discovery.Prometheus: "[]\n",
		discovery.CSV:        "namespace,name,uid,provider,region,zone,ip,port,url,egressIP,healthy\n",
		discovery.Env:        "",
	}
	for _, format := range discovery.Formats() {
		document, err := discovery.Render(format, v1.Discovery{GeneratedAt: noon})
		require.NoError(t, err)
		require.NotEmpty(t, document.ETag)
		if want, told := wanted[format]; told {
			require.Equal(t, want, string(document.Body))
			continue
		}
		require.Equal(t, discovery.PAC, format)
		require.Contains(t, string(document.Body), `var proxies = ["PROXY 127.0.0.1:9"];`, "nobody goes without a proxy")
	}
}

func TestEveryFormatWritesItsOwnWay(t *testing.T) {
	t.Parallel()
	one := proxy("a", "b", "2001:db8::7")
	one.Metadata.Labels = map[string]string{"example.com/tier": "gold"}
	one.Spec.Placement = v1.Placement{Region: "eu, west", Zone: `z"1`}
	list := v1.Discovery{GeneratedAt: noon, Proxies: discovery.Endpoints([]v1.Proxy{one, proxy("a", "a", "203.0.113.7")})}
	body := func(f discovery.Format) string {
		document, err := discovery.Render(f, list)
		require.NoError(t, err)
		return string(document.Body)
	}
	var groups []struct {
		Targets []string
		Labels  map[string]string
	}
	require.NoError(t, json.Unmarshal([]byte(body(discovery.Prometheus)), &groups))
	require.Equal(t, []string{"203.0.113.7:3128"}, groups[0].Targets)
	require.Equal(t, []string{"[2001:db8::7]:3128"}, groups[1].Targets)
	require.Equal(t, "gold", groups[1].Labels["__meta_egressfleet_label_example_com_tier"])
	require.Equal(t, "eu, west", groups[1].Labels["__meta_egressfleet_region"])
	rows, err := csv.NewReader(strings.NewReader(body(discovery.CSV))).ReadAll()
	require.NoError(t, err)
	require.Equal(t, []string{
		"a", "b", "u", "local", "eu, west", `z"1`, "2001:db8::7", "3128", "http://[2001:db8::7]:3128", "", "true",
	}, rows[2])
	require.Contains(t, body(discovery.PAC), `var proxies = ["PROXY 203.0.113.7:3128","PROXY [2001:db8::7]:3128"];`)
	for _, line := range []string{
		"HTTPS_PROXY=http://203.0.113.7:3128\n", "http_proxy=http://203.0.113.7:3128\n", "NO_PROXY=localhost,127.0.0.1,::1\n",
	} {
		require.Contains(t, body(discovery.Env), line)
	}
}

func TestTheETagIsAboutTheProxiesAndNotTheTime(t *testing.T) {
	t.Parallel()
	etag := func(format discovery.Format, list v1.Discovery) string {
		document, err := discovery.Render(format, list)
		require.NoError(t, err)
		return document.ETag
	}
	one := v1.Discovery{GeneratedAt: noon, Proxies: discovery.Endpoints([]v1.Proxy{proxy("a", "a", "203.0.113.7")})}
	later := one
	later.GeneratedAt = noon.Add(time.Hour)
	stale := one
	stale.Stale = true
	other := one
	other.Proxies = discovery.Endpoints([]v1.Proxy{proxy("a", "a", "203.0.113.8")})
	for _, format := range discovery.Formats() {
		require.Equal(t, etag(format, one), etag(format, later))
		require.NotEqual(t, etag(format, one), etag(format, other))
	}
	require.NotEqual(t, etag(discovery.JSON, one), etag(discovery.JSON, stale), "only the body says that it is stale")
	require.NotEqual(t, etag(discovery.JSON, one), etag(discovery.Text, one))
}

func TestTheJSONIsTheListItself(t *testing.T) {
	t.Parallel()
	want := v1.Discovery{
		Version: v1.DiscoveryVersion, GeneratedAt: noon.UTC(), Stale: true,
		Proxies: discovery.Endpoints([]v1.Proxy{proxy("a", "a", "203.0.113.7")}),
	}
	document, err := discovery.Render(discovery.JSON, want)
	require.NoError(t, err)
	var got v1.Discovery
	require.NoError(t, json.Unmarshal(document.Body, &got))
	require.Equal(t, want, got)
}

func TestAnUnknownFormatIsNamed(t *testing.T) {
	t.Parallel()
	_, err := discovery.Render("xml", v1.Discovery{})
	require.ErrorContains(t, err, `"xml"`)
	_, err = discovery.Render(discovery.JSON, v1.Discovery{GeneratedAt: time.Date(99999, 1, 1, 0, 0, 0, 0, time.UTC)})
	require.ErrorContains(t, err, "json")
}

func TestTheDocumentIsWhatTheWordsAre(t *testing.T) {
	t.Parallel()
	for name, list := range map[string]v1.Discovery{
		"none":  {GeneratedAt: noon},
		"some":  {GeneratedAt: noon, Proxies: discovery.Endpoints(many(3))},
		"stale": {GeneratedAt: noon, Stale: true, AgeSeconds: 7, Proxies: discovery.Endpoints(many(1))},
		"what HTML would read": {GeneratedAt: noon, Proxies: []v1.Endpoint{
			{Name: "a", Labels: map[string]string{"<b>&": "\u2028"}},
		}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			document, err := discovery.Render(discovery.JSON, list)
			require.NoError(t, err)
			list.Version, list.GeneratedAt = v1.DiscoveryVersion, list.GeneratedAt.UTC()
			if list.Proxies == nil {
				list.Proxies = []v1.Endpoint{}
			}
			var want strings.Builder
			require.NoError(t, json.NewEncoder(&want).Encode(list))
			require.Equal(t, want.String(), string(document.Body))
			list.GeneratedAt, list.AgeSeconds = noon.Add(time.Hour), 99
			later, err := discovery.Render(discovery.JSON, list)
			require.NoError(t, err)
			require.Equal(t, document.ETag, later.ETag, "the times are no news")
			list.Stale = !list.Stale
			other, err := discovery.Render(discovery.JSON, list)
			require.NoError(t, err)
			require.NotEqual(t, document.ETag, other.ETag)
		})
	}
}
