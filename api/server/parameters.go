package server

import (
	"maps"
	"net/url"
	"slices"
	"strings"

	"github.com/labstack/echo/v4"

	v1 "github.com/egressfleet/egressfleet/api/v1"
)

const (
	idempotencyKey = "Idempotency-Key"
	ifNoneMatch    = "If-None-Match"
	skipCleanup    = "skipCleanup"
)

// queryParameters are those of openapi.yaml, by operation. A name that is not here
// is refused: a mistyped filter must not become no filter. The health checks are
// left out, because what supervisors add to them is their own affair.
var queryParameters = map[string][]string{
	"listProviders": nil,
	"applyProxy":    nil,
	"getProxy":      nil,
	"deleteProxy":   {skipCleanup, "reason"},
	"replaceProxy":  nil,
	"retryProxy":    nil,
	"holdProxy":     nil,
	"resumeProxy":   nil,
	"getTimeline":   nil,
	"listProxies":   nil,
	"getDiscovery":  {"format"},
}

// parameterChecks are the middlewares that hold each operation to its parameters.
func parameterChecks() map[string][]echo.MiddlewareFunc {
	checks := map[string][]echo.MiddlewareFunc{}
	for operation, query := range queryParameters {
		checks[operation] = []echo.MiddlewareFunc{checkParameters(query)}
	}
	return checks
}

// checkParameters refuses what the generated code would refuse without naming it, or
// not at all.
func checkParameters(query []string) echo.MiddlewareFunc {
	return func(next echo.HandlerFunc) echo.HandlerFunc {
		return func(c echo.Context) error {
			for _, check := range []error{checkPath(c), checkQuery(c.Request().URL, query), checkHeaders(c)} {
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
	query, err := url.ParseQuery(u.RawQuery)
	if err != nil {
		return &problem{kind: malformedRequest, detail: "the query cannot be read"}
	}
	for _, name := range slices.Sorted(maps.Keys(query)) {
		switch values := query[name]; {
		case !slices.Contains(allowed, name):
			return &problem{unknownField, name, values[0], "is not a query parameter of this route"}
		case len(values) > 1:
			return &problem{duplicateField, name, strings.Join(values, ", "), "is there more than once"}
		case name == skipCleanup && values[0] != "true" && values[0] != "false":
			return &problem{wrongType, name, values[0], "is not true or false"}
		}
	}
	return nil
}

func checkHeaders(c echo.Context) error {
	header := c.Request().Header
	if keys := header.Values(idempotencyKey); len(keys) > 1 {
		return &problem{duplicateField, idempotencyKey, strings.Join(keys, ", "), "is there more than once"}
	}
	if known := header.Values(ifNoneMatch); len(known) > 1 {
		header.Set(ifNoneMatch, strings.Join(known, ", ")) // which is what several lines mean
	}
	return nil
}
