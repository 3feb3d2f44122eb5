package server

import (
	"fmt"
	"net/http"
	"strings"

	"github.com/egressfleet/egressfleet/api/server/openapi"
	"github.com/egressfleet/egressfleet/api/server/strictjson"
)

// kind is a type of problem. Clients branch on its name: never change one.
type kind struct {
	name   string
	title  string
	status int
}

// problemURN comes before a kind's name. It is a URN because there is no page to
// look up: openapi.yaml lists the kinds.
const problemURN = "urn:egressfleet:problem:"

// Every kind of problem, by status.
var (
	malformedRequest   = kind{"malformed-request", "Malformed request", http.StatusBadRequest}
	wrongType          = kind{"wrong-type", "Wrong type", http.StatusBadRequest}
	unknownField       = kind{"unknown-field", "Unknown field", http.StatusBadRequest}
	duplicateField     = kind{"duplicate-field", "Duplicate field", http.StatusBadRequest}
	missingParameter   = kind{"missing-parameter", "Missing parameter", http.StatusBadRequest}
	unauthenticated    = kind{"unauthenticated", "Who is asking is not known", http.StatusUnauthorized}
	forbidden          = kind{"forbidden", "Not allowed", http.StatusForbidden}
	notFound           = kind{"not-found", "No such proxy", http.StatusNotFound}
	providersUnknown   = kind{"providers-unknown", "Providers are unknown", http.StatusNotFound}
	noSuchRoute        = kind{"no-such-route", "No such route", http.StatusNotFound}
	methodNotAllowed   = kind{"method-not-allowed", "Method not allowed", http.StatusMethodNotAllowed}
	bodyTooSlow        = kind{"body-too-slow", "Body too slow", http.StatusRequestTimeout}
	conflict           = kind{"conflict", "Conflict", http.StatusConflict}
	preconditionFailed = kind{"precondition-failed", "Another generation", http.StatusPreconditionFailed}
	bodyTooLarge       = kind{"body-too-large", "Body too large", http.StatusRequestEntityTooLarge}
	unsupportedMedia   = kind{"unsupported-media-type", "Unsupported media type", http.StatusUnsupportedMediaType}
	invalidField       = kind{"invalid-field", "Invalid value", http.StatusUnprocessableEntity}
	tooManyRequests    = kind{"too-many-requests", "Too many requests", http.StatusTooManyRequests}
	internalFault      = kind{"internal", "Internal error", http.StatusInternalServerError}
	unavailable        = kind{"unavailable", "The fleet is unavailable", http.StatusServiceUnavailable}
	notReady           = kind{"not-ready", "Not ready", http.StatusServiceUnavailable}
	discoveryUnknown   = kind{"discovery-unknown", "Discovery is unknown", http.StatusServiceUnavailable}
)

const (
	shownValue = 80  // characters of a value
	shownField = 350 // characters of a field: metadata.labels. and the longest label key
	shownPath  = 500 // bytes of a path; a longer one is left out
)

// retryAfter is when a 503 may be over: the list of discovery is then a new one.
const retryAfter = refreshPeriod

// problem is an error that a client is told as it is.
type problem struct {
	kind   kind
	field  string // what is to blame, where one is
	value  string // what it holds
	detail string // a sentence, or what comes after field and value
}

// Error is for the log; it holds nothing that the client is not told.
func (p *problem) Error() string { return p.kind.name + ": " + p.sentence() }

func (p *problem) sentence() string {
	switch {
	case p.field == "":
		return p.detail
	case p.value == strictjson.Hidden:
		return cut(p.field, shownField) + " " + p.detail
	}
	return fmt.Sprintf("%s: %q %s", cut(p.field, shownField), cut(p.value, shownValue), p.detail)
}

// document is the problem as RFC 9457 writes it.
func (p *problem) document(r *http.Request) openapi.Problem {
	instance := r.URL.EscapedPath()
	if len(instance) > shownPath {
		instance = ""
	}
	document := openapi.Problem{
		Type: problemURN + p.kind.name, Title: p.kind.title, Status: p.kind.status,
		Detail: p.sentence(), Instance: instance, Field: cut(p.field, shownField),
	}
	if p.field != "" { // then also an empty value says something
		value := cut(p.value, shownValue)
		document.Value = &value
	}
	return document
}

// cut shortens what came from outside to so many characters.
func cut(s string, characters int) string {
	s = strings.ToValidUTF8(s, "\uFFFD")
	if short := []rune(s); len(short) > characters {
		return string(short[:characters]) + "…"
	}
	return s
}
