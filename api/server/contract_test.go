package server_test

import (
	"encoding/json"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/getkin/kin-openapi/openapi3"
	"github.com/getkin/kin-openapi/openapi3filter"
	"github.com/getkin/kin-openapi/routers"
	"github.com/getkin/kin-openapi/routers/legacy"
	"github.com/stretchr/testify/require"

	"github.com/egressfleet/egressfleet/api/server"
)

const contract = "../openapi.yaml"

func loadContract(t *testing.T) *openapi3.T {
	t.Helper()
	document, err := openapi3.NewLoader().LoadFromFile(contract)
	require.NoError(t, err)
	return document
}

func TestTheContractIsValid(t *testing.T) {
	t.Parallel()
	document := loadContract(t)
	require.NoError(t, document.Validate(t.Context(), openapi3.EnableSchemaFormatValidation()))
	for path, item := range document.Paths.Map() {
		for method, operation := range item.Operations() {
			require.NotEmpty(t, operation.OperationID, "%s %s", method, path)
			require.NotEmpty(t, operation.Summary, "%s %s", method, path)
		}
	}
	for name, schema := range document.Components.Schemas {
		if name != "DiscoveryFormat" && name != "ConditionStatus" && name != "Health" {
			require.NotEmpty(t, schema.Value.Description, name)
		}
	}
}

func TestEveryRouteOfTheContractIsServedAndNoOther(t *testing.T) {
	t.Parallel()
	var written, served []string
	for path, item := range loadContract(t).Paths.Map() {
		for method := range item.Operations() {
			written = append(written, method+" "+strings.NewReplacer("{", ":", "}", "").Replace(path))
		}
	}
	own := []string{"/openapi.yaml", "/docs"} // the contract itself
	for _, route := range newStage().server.Routes() {
		if slices.Contains(own, route.Path) || server.IsPage(route.Path) {
			continue
		}
		served = append(served, route.Method+" "+route.Path)
	}
	require.Len(t, written, 17)
	require.ElementsMatch(t, written, served)
}

func TestEveryOperationTakesTheQueryOfTheContractAndNoOther(t *testing.T) {
	t.Parallel()
	taken := server.QueryParameters()
	for path, item := range loadContract(t).Paths.Map() {
		for _, operation := range item.Operations() {
			var want []string
			for _, parameter := range operation.Parameters {
				if parameter.Value.In == "query" {
					want = append(want, parameter.Value.Name)
				}
			}
			if operation.Security != nil {
				for _, way := range *operation.Security {
					if _, query := way["query"]; query {
						want = append(want, "token")
					}
				}
			}
			got, checked := taken[operation.OperationID]
			require.Equal(t, strings.HasPrefix(path, "/v1/"), checked, operation.OperationID)
			require.ElementsMatch(t, want, got, operation.OperationID)
		}
	}
}

func TestEveryOperationNeedsTheScopeOfTheContract(t *testing.T) {
	t.Parallel()
	scopes := server.Scopes()
	for path, item := range loadContract(t).Paths.Map() {
		for _, operation := range item.Operations() {
			if operation.Security != nil && len(*operation.Security) == 0 {
				require.Contains(t, []string{"/healthz", "/readyz"}, path, "nothing else is open")
				continue
			}
			want, _ := operation.Extensions["x-scope"].(string)
			require.Equal(t, want, string(scopes[operation.OperationID]), operation.OperationID)
		}
	}
}

func TestEveryAnswerKeepsTheContract(t *testing.T) {
	t.Parallel()
	router := contractRouter(t)
	for name, call := range answers {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := call.request(t)
			route, path, err := router.FindRoute(r)
			if strings.HasPrefix(name, "a ") { // a path or a method that is not there
				require.Error(t, err)
				return
			}
			require.NoError(t, err)
			answer := call.send(t)
			request := &openapi3filter.RequestValidationInput{Request: r, PathParams: path, Route: route, Options: anybody()}
			if answer.Code < http.StatusBadRequest {
				require.NoError(t, openapi3filter.ValidateRequest(t.Context(), request))
			}
			response := openapi3filter.ResponseValidationInput{
				RequestValidationInput: request, Status: answer.Code, Header: answer.Header(),
				Options: &openapi3filter.Options{IncludeResponseStatus: true},
			}
			require.NoError(t, openapi3filter.ValidateResponse(t.Context(), response.SetBodyBytes(answer.Body.Bytes())))
		})
	}
}

func TestTheContractRefusesWhatTheServerRefuses(t *testing.T) {
	t.Parallel()
	router := contractRouter(t)
	for name, body := range map[string]string{
		"an unknown field":      `{"spec": {"provider": "gcp", "port": 1, "placement": {"zon": "b"}}}`,
		"a port out of range":   `{"spec": {"provider": "gcp", "port": 65536}}`,
		"a port that is a text": `{"spec": {"provider": "gcp", "port": "1"}}`,
		"two kinds of cloud-init": `{"spec": {"provider": "gcp", "port": 1,
			"cloudInit": {"inline": "a", "inlineBase64": "YQ=="}}}`,
		"no spec":                `{"metadata": {"name": "a"}}`,
		"a null":                 `{"spec": {"provider": "gcp", "port": 1, "placement": null}}`,
		"a label with a space":   `{"metadata": {"labels": {"a": "b c"}}, "spec": {"provider": "gcp", "port": 1}}`,
		"a negative duration":    `{"spec": {"provider": "gcp", "port": 1, "deadlines": {"delete": "-1s"}}}`,
		"an upper-case provider": `{"spec": {"provider": "GCP", "port": 1}}`,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			put := call{method: "PUT", target: proxyA, body: body}
			require.GreaterOrEqual(t, put.send(t).Code, http.StatusBadRequest)
			r := put.request(t)
			route, path, err := router.FindRoute(r)
			require.NoError(t, err)
			input := &openapi3filter.RequestValidationInput{Request: r, PathParams: path, Route: route, Options: anybody()}
			require.Error(t, openapi3filter.ValidateRequest(t.Context(), input))
		})
	}
}

func TestTheContractRefusesTheMessagesThatTheServerRefuses(t *testing.T) {
	t.Parallel()
	router := contractRouter(t)
	for name, refused := range map[string]call{
		"an unknown field":       {method: "POST", target: proxyA + "/hold", body: `{"until": "noon"}`},
		"a field of another one": {method: "POST", target: proxyA + "/replace", body: `{"for": "1h"}`},
		"a reason too long": {
			method: "POST", target: proxyA + "/retry", body: `{"reason": "` + strings.Repeat("x", 1025) + `"}`,
		},
		"a time without a unit": {method: "POST", target: proxyA + "/hold", body: `{"for": "60"}`},
		"a switch that is none": {method: "DELETE", target: proxyA + "?skipCleanup=yes&reason=x"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			require.GreaterOrEqual(t, refused.send(t).Code, http.StatusBadRequest)
			r := refused.request(t)
			route, path, err := router.FindRoute(r)
			require.NoError(t, err)
			input := &openapi3filter.RequestValidationInput{Request: r, PathParams: path, Route: route, Options: anybody()}
			require.Error(t, openapi3filter.ValidateRequest(t.Context(), input))
		})
	}
}

// anybody leaves tokens to the tests that are about them.
func anybody() *openapi3filter.Options {
	return &openapi3filter.Options{AuthenticationFunc: openapi3filter.NoopAuthenticationFunc}
}

// request is the call as the contract judges it.
func (c call) request(t *testing.T) *http.Request {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), c.method, c.target, strings.NewReader(c.body))
	require.NoError(t, err)
	if c.body != "" {
		r.Header.Set("Content-Type", "application/json")
	}
	return r
}

func contractRouter(t *testing.T) routers.Router {
	t.Helper()
	router, err := legacy.NewRouter(loadContract(t))
	require.NoError(t, err)
	return router
}

func TestEveryExampleBodyIsTaken(t *testing.T) {
	t.Parallel()
	put := loadContract(t).Paths.Find("/v1/namespaces/{namespace}/proxies/{name}").Put
	examples := put.RequestBody.Value.Content["application/json"].Examples
	require.Len(t, examples, 2)
	for name, example := range examples {
		body, err := json.Marshal(example.Value.Value)
		require.NoError(t, err)
		answer := newStage().ask(t, "PUT", proxyA, string(body))
		require.Equal(t, http.StatusCreated, answer.Code, "%s: %s", name, answer.Body)
	}
}

func TestEveryExampleMessageIsTaken(t *testing.T) {
	t.Parallel()
	for path, item := range loadContract(t).Paths.Map() {
		if item.Post == nil {
			continue
		}
		example := item.Post.RequestBody.Value.Content["application/json"].Example
		require.NotNil(t, example, path)
		body, err := json.Marshal(example)
		require.NoError(t, err)
		target := strings.NewReplacer("{namespace}", "default", "{name}", "a").Replace(path)
		s := newStage(pool()...)
		s.server.Refresh(t.Context())
		answer := s.ask(t, "POST", target, string(body))
		require.Less(t, answer.Code, http.StatusBadRequest, "%s: %s", path, answer.Body)
	}
}
