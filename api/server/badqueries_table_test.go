package server_test

import (
	"encoding/base64"
	"net/url"
	"strings"
)

// discovery is a bad query of discovery, and list one of a list of Proxies.
func discovery(query string, want refusal) badRequest {
	return badRequest{"GET", "/v1/discovery?" + query, "", nil, want}
}

func list(query string, want refusal) badRequest {
	return badRequest{"GET", "/v1/namespaces/default/proxies?" + query, "", nil, want}
}

// continued is a list that goes on behind a key that somebody made up.
func continued(key string) badRequest {
	token := "v1." + base64.RawURLEncoding.EncodeToString([]byte(key))
	return list("continue="+token, invalid("continue", token))
}

// expecting is a write with an If-Match that is none.
func expecting(tag string) badRequest {
	return post("hold", "{}", invalid("If-Match", tag), "If-Match", tag)
}

var (
	name254     = strings.Repeat("x", 254)
	selector4k  = strings.Repeat("a,", 2048) + "b"
	notSelector = "labels"

	longSelector = invalid("labels", selector4k[:80]+"…")
	twoTags      = twice("If-Match", `"1", "2"`)
	goneBy       = refusal{412, "precondition-failed", "metadata.generation", "1"}
)

// badDiscovery are about the queries of discovery, pick and events.
var badDiscovery = map[string]badRequest{
	"a limit that is a word":       discovery("limit=many", mistyped("limit", "many")),
	"a limit that is empty":        discovery("limit=", mistyped("limit", "")),
	"a limit below 0":              discovery("limit=-1", mistyped("limit", "-1")),
	"a limit with a sign":          discovery("limit=%2B1", mistyped("limit", "+1")),
	"a limit with a fraction":      discovery("limit=1.5", mistyped("limit", "1.5")),
	"a limit in hexadecimal":       discovery("limit=0x10", mistyped("limit", "0x10")),
	"a limit of wide digits":       discovery("limit=%EF%BC%91", mistyped("limit", "１")),
	"a limit that is too high":     discovery("limit=100001", mistyped("limit", "100001")),
	"a limit that no integer has":  discovery("limit=99999999999999999999", mistyped("limit", "99999999999999999999")),
	"a limit twice":                discovery("limit=1&limit=1", twice("limit", "1, 1")),
	"a limit as an array":          discovery("limit[]=1", unknown("limit[]", "1")),
	"a shuffle that is 1":          discovery("shuffle=1", mistyped("shuffle", "1")),
	"a shuffle in capitals":        discovery("shuffle=True", mistyped("shuffle", "True")),
	"a shuffle that is a switch":   discovery("shuffle", mistyped("shuffle", "")),
	"a health that nobody knows":   discovery("healthy=maybe", invalid("healthy", "maybe")),
	"a health of another route":    discovery("healthy=unknown", invalid("healthy", "unknown")),
	"the filter of another route":  discovery("phase=Running", unknown("phase", "Running")),
	"a filter in capitals":         discovery("Provider=gcp", unknown("Provider", "gcp")),
	"a provider twice":             discovery("provider=a&provider=b", twice("provider", "a, b")),
	"a namespace that is too long": discovery("namespace="+name254, invalid("namespace", cut80)),
	"a provider that is too long":  discovery("provider="+name254, invalid("provider", cut80)),
	"a region that is too long":    discovery("region="+name254, invalid("region", cut80)),
	"a zone that is too long":      discovery("zone="+name254, invalid("zone", cut80)),
	"a selector without an end":    discovery("labels=tier+in+(gold", invalid(notSelector, "tier in (gold")),
	"a selector of an operator":    discovery("labels=%3D", invalid(notSelector, "=")),
	"a selector with a slash":      discovery("labels=/a%3Db", invalid(notSelector, "/a=b")),
	"a selector with an umlaut":    discovery("labels=%C3%BC%3Da", invalid(notSelector, "ü=a")),
	"a selector with a zero byte":  discovery("labels=a%3D%00", invalid(notSelector, "a=\x00")),
	"a selector that is no UTF-8":  discovery("labels=a%3D%FF", invalid(notSelector, "a=\uFFFD")),
	"a selector that climbs":       discovery("labels=../a", invalid(notSelector, "../a")),
	"a selector of 4097 bytes":     discovery("labels="+url.QueryEscape(selector4k), longSelector),
	"a wait without a unit":        discovery("wait=30", invalid("wait", "30")),
	"a wait that is empty":         discovery("wait=", invalid("wait", "")),
	"a wait below 0":               discovery("wait=-1s", invalid("wait", "-1s")),
	"a wait of more than a minute": discovery("wait=61s", invalid("wait", "61s")),
	"a wait that no number holds":  discovery("wait=99999999999h", invalid("wait", "99999999999h")),
	"a wait twice":                 discovery("wait=1s&wait=2s", twice("wait", "1s, 2s")),
	"a query with a hash in it":    discovery("x=%23", unknown("x", "#")),
	"a query of a name alone":      discovery("=1", unknown("", "")),
	"a query that is half a byte":  discovery("format=%e", malformed),
	"a discovery that is written":  {"POST", "/v1/discovery", "{}", nil, noMethod("POST")},
	"a pick in another format":     {"GET", "/v1/discovery/pick?format=pac", "", nil, invalid("format", "pac")},
	"a pick of several":            {"GET", "/v1/discovery/pick?limit=2", "", nil, unknown("limit", "2")},
	"a pick that waits":            {"GET", "/v1/discovery/pick?wait=1s", "", nil, unknown("wait", "1s")},
	"a pick with a long key": {
		"GET", "/v1/discovery/pick?sticky=" + strings.Repeat("x", 1025), "", nil, invalid("sticky", cut80),
	},
	"a pick with two keys":         {"GET", "/v1/discovery/pick?sticky=a&sticky=b", "", nil, twice("sticky", "a, b")},
	"a pick that is put":           {"PUT", "/v1/discovery/pick", "{}", nil, noMethod("PUT")},
	"events in a format":           {"GET", "/v1/discovery/events?format=txt", "", nil, unknown("format", "txt")},
	"events of a bad selector":     {"GET", "/v1/discovery/events?labels=a+b", "", nil, invalid(notSelector, "a b")},
	"events that are deleted":      {"DELETE", "/v1/discovery/events", "", nil, noMethod("DELETE")},
	"a path that climbs":           {"GET", "/v1/discovery/../providers", "", nil, nothing},
	"a path that climbs, encoded":  {"GET", "/v1/discovery/%2e%2e/providers", "", nil, nothing},
	"a path with two slashes":      {"GET", "//v1/discovery", "", nil, nothing},
	"a path with a backslash":      {"GET", `/v1\discovery`, "", nil, nothing},
	"a path with its slash hidden": {"GET", "/v1%2fdiscovery", "", nil, nothing},
}

// badLists are about the queries of lists.
var badLists = map[string]badRequest{
	"a phase in small letters":         list("phase=running", invalid("phase", "running")),
	"a phase that is several":          list("phase=Running,Pending", invalid("phase", "Running,Pending")),
	"a list of no health":              list("health=any", invalid("health", "any")),
	"the filter of discovery":          list("healthy=true", unknown("healthy", "true")),
	"a list by zone":                   list("zone=b", unknown("zone", "b")),
	"a list in another format":         list("format=txt", unknown("format", "txt")),
	"a list that is shuffled":          list("shuffle=true", unknown("shuffle", "true")),
	"a list that waits":                list("wait=1s", unknown("wait", "1s")),
	"a list of a long reason":          list("reason="+name254, invalid("reason", cut80)),
	"a list of two reasons":            list("reason=a&reason=b", twice("reason", "a, b")),
	"a list of a bad selector":         list("labels=a%3D%3D%3Db", invalid(notSelector, "a===b")),
	"a list with a bad limit":          list("limit=1e3", mistyped("limit", "1e3")),
	"a list of all with a token":       {"GET", "/v1/proxies?token=x", "", nil, unknown("token", "(hidden)")},
	"a list of all that is put":        {"PUT", "/v1/proxies", "{}", nil, noMethod("PUT")},
	"a list of all with a bad phase":   {"GET", "/v1/proxies?phase=Gone", "", nil, invalid("phase", "Gone")},
	"a list of all in a namespace":     {"GET", "/v1/proxies?namespace=a", "", nil, unknown("namespace", "a")},
	"a continue that is a name":        list("continue=a", invalid("continue", "a")),
	"a continue of another kind":       list("continue=v2.ZGVmYXVsdCBh", invalid("continue", "v2.ZGVmYXVsdCBh")),
	"a continue of nothing":            list("continue=v1.", invalid("continue", "v1.")),
	"a continue that is no base64":     list("continue=v1.%2A", invalid("continue", "v1.*")),
	"a continue that is padded":        list("continue=v1.YSBi%3D%3D", invalid("continue", "v1.YSBi==")),
	"a continue without a name":        continued("default"),
	"a continue of an empty name":      continued("default "),
	"a continue of three names":        continued("a b c"),
	"a continue that climbs":           continued("default ../a"),
	"a continue in capitals":           continued("Default A"),
	"a continue with a zero byte":      continued("default a\x00"),
	"a continue that is no UTF-8":      continued("\xff \xff"),
	"a continue of a long name":        list("continue="+strings.Repeat("x", 1025), invalid("continue", cut80)),
	"a continue twice":                 list("continue=a&continue=b", twice("continue", "a, b")),
	"providers with a continue":        {"GET", "/v1/providers?continue=x", "", nil, unknown("continue", "x")},
	"a Proxy with a filter":            {"GET", proxyA + "?labels=a", "", nil, unknown("labels", "a")},
	"a Proxy that is waited for":       {"GET", proxyA + "?wait=1s", "", nil, unknown("wait", "1s")},
	"a message that waits for a word":  {"POST", proxyA + "/retry?wait=long", "", nil, invalid("wait", "long")},
	"a delete that waits for too long": remove("wait=1h", invalid("wait", "1h")),
	"a put that waits for too long":    {"PUT", proxyA + "?wait=1m1s", minimal, nil, invalid("wait", "1m1s")},
}

// badConditions are about If-Match.
var badConditions = map[string]badRequest{
	"a condition without quotes":      expecting("1"),
	"a condition that is weak":        expecting(`W/"1"`),
	"a condition on anything":         expecting("*"),
	"a condition on several":          expecting(`"1", "2"`),
	"a condition on nothing":          expecting(""),
	"a condition on 0":                expecting(`"0"`),
	"a condition below 0":             expecting(`"-1"`),
	"a condition that begins with 0":  expecting(`"01"`),
	"a condition in wide digits":      expecting(`"１"`),
	"a condition that no integer has": expecting(`"9999999999999999999"`),
	"a condition with one quote":      expecting(`"1`),
	"a condition on a word":           expecting(`"latest"`),
	"two conditions":                  post("hold", "{}", twoTags, "If-Match", `"1"`, "If-Match", `"2"`),
	"a bad condition for a put":       put(unchanged, invalid("If-Match", "x"), "If-Match", "x"),
	"a bad condition for a delete":    {"DELETE", proxyA, "", []string{"If-Match", "x"}, invalid("If-Match", "x")},
	"a condition on what is gone by":  put(unchanged, goneBy, "If-Match", `"2"`),
	"a condition on what is not there": {
		"PUT", "/v1/namespaces/default/proxies/new", minimal,
		[]string{"If-Match", `"1"`},
		refusal{412, "precondition-failed", "", ""},
	},
	"a message on what is gone by": post("hold", "{}", goneBy, "If-Match", `"7"`),
}
