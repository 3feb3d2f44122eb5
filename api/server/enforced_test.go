package server_test

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/getkin/kin-openapi/openapi3"
	"github.com/getkin/kin-openapi/openapi3filter"
	"github.com/stretchr/testify/require"
)

// asked is a request to an operation.
type asked struct {
	method  string
	path    string // as the contract writes it
	names   map[string]string
	query   url.Values
	headers http.Header
	body    *any // nil: none
}

// brokenRequest is right in all but one thing.
type brokenRequest struct {
	right, wrong asked
	blamed       string // the field that the answer names
}

// Every keyword of every parameter and body of the contract is held by the server, which
// names what is to blame: whoever writes a new one has to see to that.
func TestTheServerHoldsEveryConstraintOfTheContract(t *testing.T) {
	t.Parallel()
	router, count := contractRouter(t), 0
	judged := func(t *testing.T, a asked) error {
		t.Helper()
		r := a.call(t).request(t)
		maps.Copy(r.Header, a.headers)
		route, path, err := router.FindRoute(r)
		require.NoError(t, err)
		return openapi3filter.ValidateRequest(t.Context(), &openapi3filter.RequestValidationInput{
			Request: r, PathParams: path, Route: route, Options: anybody(),
		})
	}
	for path, item := range loadContract(t).Paths.Map() {
		for method, operation := range item.Operations() {
			for name, bad := range brokenRequests(t, method, path, item, operation) {
				count++
				t.Run(operation.OperationID+" "+name, func(t *testing.T) {
					t.Parallel()
					require.NoError(t, judged(t, bad.right))
					require.Error(t, judged(t, bad.wrong), "the contract takes it")
					taken, _ := bad.right.send(t)
					require.NotContains(t, []int{400, 422}, taken.Code)
					refused, s := bad.wrong.send(t)
					require.Empty(t, slices.Concat(s.fleet.ids, s.fleet.reasons, s.fleet.told), "the fleet was asked for it")
					answer := told(t, refused)
					require.Contains(t, []int{400, 422}, answer.status)
					if !strings.HasSuffix(name, "required") || !strings.HasPrefix(answer.field, bad.blamed+".") {
						require.Equal(t, bad.blamed, answer.field) // or, of a whole object, what is missing in it
					}
				})
			}
		}
	}
	require.Greater(t, count, 300, "all that the contract says was tried")
}

func brokenRequests(
	t *testing.T, method, path string, item *openapi3.PathItem, operation *openapi3.Operation,
) map[string]brokenRequest {
	t.Helper()
	all, right := map[string]brokenRequest{}, asked{method: method, path: path, names: map[string]string{}}
	parameters := slices.Concat(item.Parameters, operation.Parameters)
	for _, p := range parameters {
		require.Equal(t, p.Value.In == "path", p.Value.Required, "no test knows how to leave out %s", p.Value.Name)
		if p.Value.Required {
			right.names[p.Value.Name] = fmt.Sprint(p.Value.Example)
		}
	}
	if operation.RequestBody != nil {
		schema := operation.RequestBody.Value.Content["application/json"].Schema.Value
		body := valid(t, schema)
		right.body = &body
		for i, v := range violations(t, schema, "") {
			wrong := right
			wrong.body = &v.value
			all[fmt.Sprintf("body %d %s %s", i, v.field, v.keyword)] = brokenRequest{right, wrong, blamedIn(v.field)}
		}
		if operation.RequestBody.Value.Required {
			wrong := right
			wrong.body, wrong.headers = nil, http.Header{"Content-Type": {"application/json"}}
			all["body required"] = brokenRequest{right, wrong, ""}
		}
	}
	for _, p := range parameters {
		for i, v := range violations(t, p.Value.Schema.Value, "") {
			if text, told := onTheWire(p.Value, v); told {
				name := fmt.Sprintf("%s %s %d %s", p.Value.In, p.Value.Name, i, v.keyword)
				all[name] = brokenRequest{right, right.with(p.Value, text), nameOf(p.Value)}
			}
		}
	}
	return all
}

// onTheWire is the text of a broken parameter, where a text can break it: it has no type
// of its own, an empty header or segment is none, and no line has a second one.
func onTheWire(p *openapi3.Parameter, v violation) (text string, told bool) {
	switch value := v.value.(type) {
	case string:
		return value, value != "" && (p.In != "header" || !strings.Contains(value, "\n"))
	case float64:
		return strconv.FormatFloat(value, 'f', -1, 64), !p.Schema.Value.Type.Is("string")
	case bool:
		return strconv.FormatBool(value), !p.Schema.Value.Type.Is("string")
	default:
		return "", false
	}
}

func blamedIn(field string) string {
	if field == "" {
		return "body"
	}
	return field
}

// nameOf is what errors call a parameter.
func nameOf(p *openapi3.Parameter) string {
	if p.In == "path" {
		return "metadata." + p.Name
	}
	return p.Name
}

// with is the request with one parameter more, or another one.
func (a asked) with(p *openapi3.Parameter, value string) asked {
	switch p.In {
	case "path":
		a.names = maps.Clone(a.names)
		a.names[p.Name] = value
	case "query":
		a.query = url.Values{p.Name: {value}}
	case "header":
		a.headers = http.Header{p.Name: {value}}
	}
	return a
}

// send asks a server of its own. What has no end is asked by a client that goes at once.
func (a asked) send(t *testing.T) (*httptest.ResponseRecorder, *stage) {
	t.Helper()
	s, c, ctx := newStage(pool()...), a.call(t), t.Context()
	s.server.Refresh(ctx)
	if strings.HasSuffix(a.path, "/events") {
		gone, leave := context.WithCancel(ctx)
		leave()
		ctx = gone
	}
	return s.askWithin(ctx, c.method, c.target, c.body, c.headers...), s
}

// call is the request as the contract judges it, too.
func (a asked) call(t *testing.T) call {
	t.Helper()
	c := call{method: a.method, target: a.path}
	for name, value := range a.names {
		c.target = strings.ReplaceAll(c.target, "{"+name+"}", url.PathEscape(value))
	}
	if len(a.query) > 0 {
		c.target += "?" + a.query.Encode()
	}
	for name, values := range a.headers {
		c.headers = append(c.headers, name, values[0])
	}
	if a.body != nil {
		text, err := json.Marshal(*a.body)
		require.NoError(t, err)
		c.body = string(text)
	}
	return c
}
