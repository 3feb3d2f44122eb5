package server

import (
	"maps"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/labstack/echo/v4"

	"github.com/egressfleet/egressfleet/api/access"
	"github.com/egressfleet/egressfleet/api/server/strictjson"
	v1 "github.com/egressfleet/egressfleet/api/v1"
)

const (
	idempotencyKey = "Idempotency-Key"
	ifNoneMatch    = "If-None-Match"
	ifMatch        = "If-Match"
	skipCleanup    = "skipCleanup"
	limit          = "limit"
	shuffle        = "shuffle"
	wait           = "wait"
)

// operation is what a route demands beyond its handler.
type operation struct {
	scope access.Scope // that a token needs
	// query are the parameters of openapi.yaml. A name that is not there is refused: a
	// mistyped filter must not become no filter.
	query []string
}

// operations are those of openapi.yaml by operationId. The health checks are left out:
// they need no token, and what supervisors add to them is their own affair.
var operations = map[string]operation{
	"listProviders":  {access.ScopeRead, nil},
	"listProxies":    {access.ScopeRead, listFilters},
	"listAllProxies": {access.ScopeRead, listFilters},
	"getProxy":       {access.ScopeRead, nil},
	"getTimeline":    {access.ScopeRead, nil},
	"applyProxy":     {access.ScopeWrite, []string{wait}},
	"deleteProxy":    {access.ScopeWrite, []string{skipCleanup, "reason", wait}},
	"replaceProxy":   {access.ScopeWrite, []string{wait}},
	"retryProxy":     {access.ScopeWrite, []string{wait}},
	"holdProxy":      {access.ScopeWrite, []string{wait}},
	"resumeProxy":    {access.ScopeWrite, []string{wait}},
	"getDiscovery":   {access.ScopeDiscovery, append([]string{"format", limit, shuffle, wait}, filters...)},
	"pickProxy":      {access.ScopeDiscovery, append([]string{"format", "sticky"}, filters...)},
	// An address is all that a browser's event source can be given.
	"watchDiscovery": {access.ScopeDiscovery, filters},
	"reportProxy":    {access.ScopeDiscovery, []string{"namespace", "provider", "region", "zone", "labels", "healthy"}},
}

// filters are what the routes of discovery have in common.
var filters = []string{"namespace", "provider", "region", "zone", "labels", "healthy", "for", tokenParameter}

// listFilters are what the lists of Proxies have in common.
var listFilters = []string{"labels", "provider", "region", "phase", "health", "reason", limit, "continue"}

// operationChecks are the middlewares that hold each operation to its table.
func operationChecks() map[string][]echo.MiddlewareFunc {
	checks := map[string][]echo.MiddlewareFunc{}
	for name, o := range operations {
		checks[name] = []echo.MiddlewareFunc{allow(o.scope), checkParameters(o.query)}
	}
	return checks
}

// checkParameters refuses what the generated code would refuse without naming it, or
// not at all.
func checkParameters(query []string) echo.MiddlewareFunc {
	return func(next echo.HandlerFunc) echo.HandlerFunc {
		return func(c echo.Context) error {
			for _, check := range []error{checkPath(c), checkQuery(c.Request().URL, query), checkHeaders(c.Request().Header)} {
				if check != nil {
					return check
				}
			}
			return next(c)
		}
	}
}

func checkPath(c echo.Context) error {
	for _, name := range c.ParamNames() {
		switch value := c.Param(name); {
		case value == "":
			return &v1.FieldError{Field: "metadata." + name, Problem: "is empty"}
		case strings.Contains(value, "/"): // echo's last parameter takes the rest of the path; %2F is still encoded here
			return echo.ErrNotFound
		}
	}
	return nil
}

func checkQuery(u *url.URL, allowed []string) error {
	if u.RawQuery == "" {
		return nil
	}
	query, err := url.ParseQuery(u.RawQuery)
	if err != nil {
		return &problem{kind: malformedRequest, detail: "the query cannot be read"}
	}
	for _, name := range slices.Sorted(maps.Keys(query)) {
		switch values := query[name]; {
		case !slices.Contains(allowed, name):
			return &problem{unknownField, name, unlessToken(name, values[0]), "is not a query parameter of this route"}
		case len(values) > 1:
			return &problem{duplicateField, name, unlessToken(name, strings.Join(values, ", ")), "is there more than once"}
		}
		if err := checkValue(name, query[name][0]); err != nil {
			return err
		}
	}
	return nil
}

// unlessToken keeps a token out of an answer, also where it has no business to be.
func unlessToken(name, value string) string {
	if strings.EqualFold(name, tokenParameter) {
		return strictjson.Hidden
	}
	return value
}

// checkValue holds what is the same for a parameter wherever it is taken. A wait is read
// here already: what is refused must have had no effect.
func checkValue(name, value string) error {
	switch {
	case (name == skipCleanup || name == shuffle) && value != "true" && value != "false":
		return &problem{wrongType, name, value, "is not true or false"}
	case name == limit && !digits.MatchString(value):
		return &problem{wrongType, name, value, "is not a number within 0 to 100000"}
	case longest[name] > 0 && len(value) > longest[name]:
		return tooLong(name, value, longest[name])
	case name == wait && value == "":
		return &v1.FieldError{Field: wait, Problem: `is empty: a duration such as "30s", or no such parameter`}
	case name == wait:
		_, err := waitOf(value)
		return err
	default:
		return nil
	}
}

// nameBytes bound what no name is longer than, in bytes: a DNS name.
const nameBytes = 253

// longest are the bytes that a parameter may have, where no handler says it better.
var longest = map[string]int{
	"namespace": nameBytes, "provider": nameBytes, "region": nameBytes, "zone": nameBytes,
	"labels": 4096, "continue": 1024, "sticky": 1024,
}

func tooLong(field, value string, most int) error {
	return &v1.FieldError{Field: field, Value: value, Problem: "is more than " + strconv.Itoa(most) + " bytes"}
}

// digits are a number that no parser has trouble with.
var digits = regexp.MustCompile(`^(100000|[0-9]{1,5})$`)

func checkHeaders(header http.Header) error {
	for _, name := range []string{idempotencyKey, ifMatch} {
		if values := header.Values(name); len(values) > 1 {
			return &problem{duplicateField, name, strings.Join(values, ", "), "is there more than once"}
		}
	}
	if known := header.Values(ifNoneMatch); len(known) > 1 {
		header.Set(ifNoneMatch, strings.Join(known, ", ")) // which is what several lines mean
	}
	return nil
}
