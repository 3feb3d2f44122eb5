package server_test

import "strings"

// longReason is a byte too long.
var longReason = strings.Repeat("x", 1025)

// badMessages are about replace, retry, hold, resume and timeline.
var badMessages = map[string]badRequest{
	"a message that nobody knows": post("explode", "{}", nothing),
	"a message in capitals":       post("Hold", "{}", nothing),
	"a message with a slash":      post("hold/", "{}", nothing),
	"a message that is read":      {"GET", proxyA + "/hold", "", nil, noMethod("GET")},
	"a message that is put":       {"PUT", proxyA + "/replace", "{}", nil, noMethod("PUT")},
	"a timeline that is written":  post("timeline", "{}", noMethod("POST")),
	"a timeline with a query":     {"GET", proxyA + "/timeline?limit=5", "", nil, unknown("limit", "5")},
	"a timeline of a bad name": {
		"GET", "/v1/namespaces/default/proxies/A/timeline", "", nil,
		invalid("metadata.name", "A"),
	},
	"a message to a bad name": {
		"POST", "/v1/namespaces/default/proxies/A/retry", "", nil,
		invalid("metadata.name", "A"),
	},
	"a message to a bad namespace": {
		"POST", "/v1/namespaces/-/proxies/a/resume", "", nil,
		invalid("metadata.namespace", "-"),
	},
	"a message with a query":         {"POST", proxyA + "/hold?for=1h", "", nil, unknown("for", "1h")},
	"a message with a mistyped name": post("replace", `{"resaon": "x"}`, unknown("resaon", "(hidden)")),
	"a message with capitals":        post("retry", `{"Reason": "x"}`, unknown("Reason", "(hidden)")),
	"a replacement for an hour":      post("replace", `{"for": "1h"}`, unknown("for", "(hidden)")),
	"a resumption for an hour":       post("resume", `{"for": "1h"}`, unknown("for", "(hidden)")),
	"a reason twice":                 post("hold", `{"reason": "a", "reason": "b"}`, twice("reason", "b")),
	"a reason that is a number":      post("retry", `{"reason": 5}`, mistyped("reason", "5")),
	"a reason that is null":          post("resume", `{"reason": null}`, mistyped("reason", "null")),
	"a long reason to replace":       post("replace", `{"reason": "`+longReason+`"}`, invalid("reason", cut80)),
	"a long reason to retry":         post("retry", `{"reason": "`+longReason+`"}`, invalid("reason", cut80)),
	"a long reason to hold":          post("hold", `{"reason": "`+longReason+`"}`, invalid("reason", cut80)),
	"a long reason to resume":        post("resume", `{"reason": "`+longReason+`"}`, invalid("reason", cut80)),
	"a hold for a number":            post("hold", `{"for": 60}`, mistyped("for", "60")),
	"a hold without a unit":          post("hold", `{"for": "60"}`, invalid("for", "60")),
	"a hold for less than a second":  post("hold", `{"for": "10ms"}`, invalid("for", "10ms")),
	"a hold below 0":                 post("hold", `{"for": "-1h"}`, invalid("for", "-1h")),
	"a hold for more than a year":    post("hold", `{"for": "8761h"}`, invalid("for", "8761h")),
	"a message that is an array":     post("hold", `[]`, mistyped("body", "[…]")),
	"a message that is null":         post("hold", `null`, mistyped("body", "null")),
	"a message that is cut off":      post("hold", `{"for": "1h`, malformed),
	"a message with a second one":    post("hold", `{} {}`, malformed),
	"a message that is a form": post("hold", "for=1h",
		media("Content-Type", "application/x-www-form-urlencoded"), "Content-Type", "application/x-www-form-urlencoded"),
	"a message with an empty key": post("hold", "{}", invalid("Idempotency-Key", ""), "Idempotency-Key", ""),
	"a message with two keys": post("hold", "{}",
		twice("Idempotency-Key", "a, b"), "Idempotency-Key", "a", "Idempotency-Key", "b"),
	"a message of a byte too many": post("hold", "{}"+strings.Repeat(" ", 1<<20-1),
		refusal{413, "body-too-large", "body", "1048577 bytes"}),
	"a message against what is there": {
		"POST", "/v1/namespaces/default/proxies/pending/replace", "", nil,
		refusal{409, "conflict", "status.providerID", ""},
	},
	"a message to nobody": {
		"POST", "/v1/namespaces/default/proxies/gone/hold", "", nil,
		refusal{404, "not-found", "metadata.name", "gone"},
	},
}

// badDeletes are about the query of a DELETE.
var badDeletes = map[string]badRequest{
	"a delete that leaves and says nothing": remove("skipCleanup=true", missing("reason", "")),
	"a delete that leaves for no reason":    remove("skipCleanup=true&reason=", missing("reason", "")),
	"a delete that leaves for a blank":      remove("skipCleanup=true&reason=%20", missing("reason", " ")),
	"a delete that leaves for too much":     remove("skipCleanup=true&reason="+longReason, invalid("reason", cut80)),
	"a delete for too much":                 remove("reason="+longReason, invalid("reason", cut80)),
	"a delete with a switch that is yes":    remove("skipCleanup=yes&reason=x", mistyped("skipCleanup", "yes")),
	"a delete with a switch that is 1":      remove("skipCleanup=1&reason=x", mistyped("skipCleanup", "1")),
	"a delete with an empty switch":         remove("skipCleanup=&reason=x", mistyped("skipCleanup", "")),
	"a delete with two switches": remove("skipCleanup=false&skipCleanup=true",
		twice("skipCleanup", "false, true")),
	"a delete with two reasons":        remove("reason=a&reason=b", twice("reason", "a, b")),
	"a delete with a mistyped switch":  remove("skipcleanup=true&reason=x", unknown("skipcleanup", "true")),
	"a delete with a query of its own": remove("force=true", unknown("force", "true")),
}
