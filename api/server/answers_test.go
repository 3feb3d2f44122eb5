package server_test

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	v1 "github.com/egressfleet/egressfleet/api/v1"
	"github.com/egressfleet/egressfleet/starter/fleet"
)

var update = flag.Bool("update", false, "write the golden answers anew")

// call is one request and what the fleet is like when it comes.
type call struct {
	method, target, body string
	headers              []string
	before               func(*stage, *testing.T)
}

const proxyA = "/v1/namespaces/default/proxies/a"

const minimal = `{"spec": {"provider": "local", "port": 3128}}`

func pool() []v1.Proxy {
	held := running("default", "held", "203.0.113.9")
	held.Status.Held = true
	pending := running("default", "pending", "")
	pending.Status.Phase = v1.PhasePending
	sick := running("default", "sick", "203.0.113.10")
	*sick.Status.Healthy = false
	return []v1.Proxy{
		running("default", "b", "203.0.113.8"), running("default", "a", "203.0.113.7"),
		running("crawl", "v6", "2001:db8::7"), held, pending, sick,
	}
}

func refreshed(s *stage, t *testing.T) { s.server.Refresh(t.Context()) }

func failing(err error) func(*stage, *testing.T) {
	return func(s *stage, _ *testing.T) { s.fleet.fail = err }
}

func panicking(with any) func(*stage, *testing.T) {
	return func(s *stage, _ *testing.T) { s.fleet.boom = with }
}

// banned is a fleet that remembers a ban, and one that is over.
func banned(s *stage, t *testing.T) {
	later := birth.Add(time.Hour).Unix()
	s.fleet.bans = fleet.Bans{Revision: 1, Bans: map[string]map[string]int64{
		"example.com": {"203.0.113.7": later, "203.0.113.8": birth.Unix()}, "other.example": {"203.0.113.8": later},
	}}
	refreshed(s, t)
}

func bansUnknown(s *stage, t *testing.T) { s.server.RefreshList(t.Context()) }

func stale(age time.Duration) func(*stage, *testing.T) {
	return func(s *stage, t *testing.T) {
		refreshed(s, t)
		s.clock.move(age)
		s.fleet.fail = fleet.ErrUnavailable
		refreshed(s, t)
	}
}

var answers = map[string]call{
	"put of a new proxy":      {"PUT", "/v1/namespaces/default/proxies/new", minimal, nil, nil},
	"put of a changed proxy":  {"PUT", proxyA, `{"spec": {"provider": "gcp", "port": 3129}}`, nil, nil},
	"put of another provider": {"PUT", proxyA, minimal, nil, nil},
	"put with a field too many": {
		"PUT", proxyA,
		`{"spec": {"provider": "gcp", "port": 3128, "placement": {"zon": "europe-west1-b"}}}`, nil, nil,
	},
	"put with a document in a wrong place": {"PUT", proxyA, `{"cloudInit": "#cloud-config\n"}`, nil, nil},
	"put without a port":                   {"PUT", proxyA, `{"spec": {"provider": "gcp"}}`, nil, nil},
	"put without a provider":               {"PUT", proxyA, `{"spec": {"port": 3128}}`, nil, nil},
	"put of a value that cannot be right":  {"PUT", proxyA, `{"spec": {"provider": "gcp", "port": 65536}}`, nil, nil},
	"put that is no json":                  {"PUT", proxyA, "{\n  \"spec\": oops}", nil, nil},
	"put of yaml":                          {"PUT", proxyA, "spec: {}", []string{"Content-Type", "application/yaml"}, nil},
	"put of too much":                      {"PUT", proxyA, strings.Repeat(" ", 1<<20+1), nil, nil},
	"put with a cloud init in it": {
		"PUT", "/v1/namespaces/default/proxies/new",
		`{"spec": {"provider": "local", "port": 1, "cloudInit": {"inline": "#cloud-config"}}}`, nil, nil,
	},
	"put while temporal is away":   {"PUT", proxyA, minimal, nil, failing(fleet.ErrUnavailable)},
	"put while no worker answers":  {"PUT", proxyA, minimal, nil, failing(fmt.Errorf("apply: %w", fleet.ErrNoWorker))},
	"get while no worker answers":  {"GET", proxyA, "", nil, failing(fleet.ErrNoWorker)},
	"put against a plain conflict": {"PUT", proxyA, minimal, nil, failing(fleet.ErrConflict)},
	"put that fails inside":        {"PUT", proxyA, minimal, nil, failing(fmt.Errorf("dial tcp 10.0.0.1: secret"))},
	"put that panics":              {"PUT", proxyA, minimal, nil, panicking("secret")},

	"get":               {"GET", proxyA, "", nil, nil},
	"get of nothing":    {"GET", "/v1/namespaces/default/proxies/gone", "", nil, nil},
	"get of a bad name": {"GET", "/v1/namespaces/default/proxies/Bad_Name", "", nil, nil},
	"delete":            {"DELETE", proxyA, "", nil, nil},
	"delete of nothing": {"DELETE", "/v1/namespaces/default/proxies/gone", "", nil, nil},
	"delete that leaves what is there": {
		"DELETE", proxyA + "?skipCleanup=true&reason=the+zone+is+closed", "", nil, nil,
	},
	"delete that leaves without a reason": {
		"DELETE", proxyA + "?skipCleanup=true", "", nil, nil,
	},
	"list":                  {"GET", "/v1/namespaces/default/proxies", "", nil, nil},
	"list of nothing":       {"GET", "/v1/namespaces/empty/proxies", "", nil, nil},
	"list of a bad name":    {"GET", "/v1/namespaces/-/proxies", "", nil, nil},
	"list while it is away": {"GET", "/v1/namespaces/default/proxies", "", nil, failing(fleet.ErrUnavailable)},

	"replace": {"POST", proxyA + "/replace", `{"reason": "banned"}`, nil, nil},
	"replace of nothing": {
		"POST", "/v1/namespaces/default/proxies/gone/replace", "", nil, nil,
	},
	"replace of what has no instance": {
		"POST", "/v1/namespaces/default/proxies/pending/replace", "", nil, nil,
	},
	"replace while no worker answers": {
		"POST", proxyA + "/replace", "", nil, failing(fleet.ErrNoWorker),
	},
	"replace with a key while no worker answers": {
		"POST", proxyA + "/replace", "", []string{"Idempotency-Key", "k"}, failing(fleet.ErrNoWorker),
	},
	"retry":              {"POST", proxyA + "/retry", `{"reason": "the image is there now"}`, nil, nil},
	"hold":               {"POST", proxyA + "/hold", `{"reason": "billing", "for": "1h"}`, nil, nil},
	"hold until resumed": {"POST", proxyA + "/hold", "", nil, nil},
	"hold for no time":   {"POST", proxyA + "/hold", `{"for": "0s"}`, nil, nil},
	"resume":             {"POST", "/v1/namespaces/default/proxies/held/resume", "{}", nil, nil},
	"timeline": {"GET", proxyA + "/timeline", "", nil, func(s *stage, _ *testing.T) {
		s.fleet.events = []v1.Event{
			{
				At: birth, Phase: v1.PhasePending, Reason: "QuotaExceeded", Class: "QuotaExceeded",
				Detail: "no more addresses; next attempt at 2026-01-02T03:09:05Z",
			},
			{At: birth.Add(5 * time.Minute), Phase: v1.PhaseProvisioning, Reason: "Provisioning"},
		}
	}},
	"timeline of no events":            {"GET", proxyA + "/timeline", "", nil, nil},
	"timeline of nothing":              {"GET", "/v1/namespaces/default/proxies/gone/timeline", "", nil, nil},
	"timeline while no worker answers": {"GET", proxyA + "/timeline", "", nil, failing(fleet.ErrNoWorker)},

	"discovery":                       {"GET", "/v1/discovery", "", nil, refreshed},
	"discovery as text":               {"GET", "/v1/discovery?format=txt", "", nil, refreshed},
	"discovery of an unknown kind":    {"GET", "/v1/discovery?format=xml", "", nil, refreshed},
	"discovery before the first list": {"GET", "/v1/discovery", "", nil, nil},
	"discovery that is stale":         {"GET", "/v1/discovery", "", nil, stale(7 * time.Second)},
	"discovery as text that is stale": {"GET", "/v1/discovery?format=txt", "", nil, stale(7 * time.Second)},
	"discovery that is too old":       {"GET", "/v1/discovery", "", nil, stale(61 * time.Second)},
	"discovery of an empty pool": {"GET", "/v1/discovery", "", nil, func(s *stage, t *testing.T) {
		s.fleet.proxies = nil
		refreshed(s, t)
	}},
	"discovery as text of an empty pool": {"GET", "/v1/discovery?format=txt", "", nil, func(s *stage, t *testing.T) {
		s.fleet.proxies = nil
		refreshed(s, t)
	}},

	"report of a ban": {
		"POST", "/v1/discovery/report",
		`{"proxy": "http://203.0.113.7:3128", "domain": "WWW.Example.com", "kind": "banned", "sticky": "k"}`, nil, refreshed,
	},
	"report of a timeout": {
		"POST", "/v1/discovery/report?namespace=crawl",
		`{"proxy": "default/a", "domain": "example.com", "kind": "timeout"}`, nil, refreshed,
	},
	"report of an instance that is gone": {
		"POST", "/v1/discovery/report?namespace=crawl",
		`{"proxy": "default/a", "domain": "example.com", "kind": "banned", "egressIP": "192.0.2.1"}`, nil, refreshed,
	},
	"report with no proxy to follow": {
		"POST", "/v1/discovery/report?namespace=nobody",
		`{"proxy": "default/a", "domain": "example.com", "kind": "slow"}`, nil, refreshed,
	},
	"report of a proxy that is not there": {
		"POST", "/v1/discovery/report",
		`{"proxy": "http://user:secret@192.0.2.1:3128", "domain": "example.com", "kind": "slow"}`, nil, refreshed,
	},
	"report of an unknown kind": {
		"POST", "/v1/discovery/report", `{"proxy": "default/a", "domain": "example.com", "kind": "angry"}`, nil, refreshed,
	},
	"report before the first list": {
		"POST", "/v1/discovery/report", `{"proxy": "default/a", "domain": "example.com", "kind": "slow"}`, nil, nil,
	},
	"discovery for a site that bans": {"GET", "/v1/discovery?format=txt&for=www.example.com", "", nil, banned},
	"pick for a site that bans":      {"GET", "/v1/discovery/pick?namespace=default&for=example.com", "", nil, banned},
	"discovery for no host name":     {"GET", "/v1/discovery?for=a%20b", "", nil, banned},
	"discovery for every site":       {"GET", "/v1/discovery?for=co.uk", "", nil, banned},
	"discovery before the bans":      {"GET", "/v1/discovery?for=example.com", "", nil, bansUnknown},

	"providers": {"GET", "/v1/providers", "", nil, nil},
	"providers after a check": {"GET", "/v1/providers", "", nil, func(s *stage, _ *testing.T) {
		at := birth.Add(time.Minute)
		s.fleet.set(func(f *fakeFleet) {
			f.checks = map[string]v1.ProviderCheck{
				"gcp": {Supported: true, CheckedAt: at, Unlisted: 1, Targets: []v1.ProviderTarget{
					{Target: "europe-west1-b", Ready: true, Reason: "Reachable", Details: map[string]string{"cpus": "24 of 32"}},
					{Target: "us-east1-c", Reason: "Forbidden", Message: "403: compute.instances.list is not granted"},
				}},
				"local": {CheckedAt: at},
				"gone":  {Supported: true, CheckedAt: at},
			}
		})
	}},
	"providers while the fleet is away": {"GET", "/v1/providers", "", nil, func(s *stage, _ *testing.T) {
		s.fleet.set(func(f *fakeFleet) { f.fail = fmt.Errorf("%w: connection refused", fleet.ErrUnavailable) })
	}},
	"providers while the file is wrong": {"GET", "/v1/providers", "", nil, func(s *stage, _ *testing.T) {
		s.providers.Configuration.State = v1.ConfigurationRetained
		s.providers.Configuration.Error = `providers.yaml: providers[1].name: "Gcp" is not a DNS label`
		s.providers.Configuration.Since = birth.Add(time.Minute)
	}},
	"providers of a file that was never right": {"GET", "/v1/providers", "", nil, func(s *stage, _ *testing.T) {
		*s.providers = v1.ProviderList{Items: []v1.Provider{}, Configuration: v1.ProviderConfiguration{
			State: v1.ConfigurationFailed, File: "providers.yaml", Since: birth, Error: "providers.yaml: is not YAML: line 3",
		}}
	}},
	"providers of a process without a file": {"GET", "/v1/providers", "", nil, func(s *stage, _ *testing.T) {
		s.providers = nil
	}},
	"providers with a filter":    {"GET", "/v1/providers?type=local", "", nil, nil},
	"health":                     {"GET", "/healthz", "", nil, failing(fleet.ErrUnavailable)},
	"readiness":                  {"GET", "/readyz", "", nil, refreshed},
	"readiness before a list":    {"GET", "/readyz", "", nil, nil},
	"readiness without temporal": {"GET", "/readyz", "", nil, stale(0)},
	"a path that is not there":   {"GET", "/v2", "", nil, nil},
	"a method that is not there": {"POST", proxyA, "", nil, nil},
}

func TestEveryAnswerIsAsWritten(t *testing.T) {
	t.Parallel()
	golden := filepath.Join("testdata", "answers")
	t.Run("answers", func(t *testing.T) {
		t.Parallel()
		for name, call := range answers {
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				got := written(t, call, call.send(t))
				path := filepath.Join(golden, strings.ReplaceAll(name, " ", "-")+".txt")
				if *update {
					require.NoError(t, os.WriteFile(path, []byte(got), 0o600))
				}
				want, err := os.ReadFile(path)
				require.NoError(t, err)
				require.Equal(t, string(want), got)
			})
		}
	})
	files, err := os.ReadDir(golden)
	require.NoError(t, err)
	for _, file := range files {
		_, given := answers[strings.ReplaceAll(strings.TrimSuffix(file.Name(), ".txt"), "-", " ")]
		require.True(t, given, "nobody gives the answer of %s", file.Name())
	}
}

// send asks a server of its own.
func (c call) send(t *testing.T) *httptest.ResponseRecorder {
	t.Helper()
	s := newStage(pool()...)
	if c.before != nil {
		c.before(s, t)
	}
	return s.ask(t, c.method, c.target, c.body, c.headers...)
}

// written is a request line and an answer as a person reads them.
func written(t *testing.T, c call, answer *httptest.ResponseRecorder) string {
	t.Helper()
	var out bytes.Buffer
	fmt.Fprintf(&out, "%s %s\n\n%d %s\n", c.method, c.target, answer.Code, http.StatusText(answer.Code))
	for _, name := range slices.Sorted(maps.Keys(answer.Header())) {
		fmt.Fprintf(&out, "%s: %s\n", name, strings.Join(answer.Header()[name], ", "))
	}
	out.WriteByte('\n')
	if strings.Contains(answer.Header().Get("Content-Type"), "json") {
		require.NoError(t, json.Indent(&out, answer.Body.Bytes(), "", "  "))
	} else {
		out.Write(answer.Body.Bytes())
	}
	return out.String()
}
