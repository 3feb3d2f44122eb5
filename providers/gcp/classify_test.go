package gcp

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"google.golang.org/api/googleapi"

	"github.com/egressfleet/egressfleet/providers"
)

// answer is an error as the client makes it of an HTTP answer.
func answer(status int, body string) error {
	return googleapi.CheckResponse(&http.Response{
		StatusCode: status, Header: http.Header{}, Body: io.NopCloser(strings.NewReader(body)),
	})
}

func missing(resource string) error {
	return answer(http.StatusNotFound, fmt.Sprintf(
		`{"error": {"code": 404, "message": "The resource '%s' was not found", "errors": [{"reason": "notFound"}]}}`, resource))
}

// What was not captured, by the same rules as what was.
func TestClassify(t *testing.T) {
	t.Parallel()
	const name = "zones/us-central1-a/instances/proxy-a"
	get, create, list := about{providers.OpGet, name}, about{op: providers.OpCreate}, about{op: providers.OpList}
	for what, c := range map[string]struct {
		err  error
		of   about
		want providers.Class
	}{
		"no error of Compute Engine at all":      {errors.New("odd"), get, providers.ErrTransient},
		"a network":                              {&url.Error{Op: "Get", URL: "u", Err: io.EOF}, get, providers.ErrTransient},
		"a call that was called off":             {context.Canceled, get, providers.ErrTransient},
		"a call that was slow":                   {errSlow, get, providers.ErrTransient},
		"the instance, by the project's number":  {missing("projects/123456789012/" + name), get, providers.ErrNotFound},
		"an instance with a longer name":         {missing("projects/p/" + name + "bc"), get, providers.ErrPermanent},
		"an instance with a longer name, dashed": {missing("projects/p/" + name + "-b"), get, providers.ErrPermanent},
		"the same name in another zone":          {missing("projects/p/zones/us-central1-b/instances/proxy-a"), get, providers.ErrPermanent},
		"the zone":                               {missing("projects/p/zones/us-central1-a"), get, providers.ErrPermanent},
		"the project":                            {missing("projects/p"), get, providers.ErrPermanent},
		"an operation":                           {missing("projects/p/zones/us-central1-a/operations/o"), get, providers.ErrTransient},
		"something without a name":               {answer(404, `{"error": {"code": 404, "message": "Not found.", "status": "NOT_FOUND"}}`), get, providers.ErrTransient},
		"an HTML 404":                            {answer(404, "<!DOCTYPE html><title>Error 404</title>"), get, providers.ErrTransient},
		"an HTML 404 that names the instance":    {answer(404, "<p>/"+name+"</p>"), get, providers.ErrTransient},
		"an empty 404":                           {answer(404, ""), get, providers.ErrTransient},
		"an empty object with 404":               {answer(404, "{}"), get, providers.ErrTransient},
		"the instance, of a create":              {missing("projects/p/" + name), create, providers.ErrPermanent},
		"a list without its project":             {missing("projects/p"), list, providers.ErrPermanent},
		"403 without a reason":                   {answer(403, `{"error": {"code": 403, "message": "No."}}`), get, providers.ErrPermanent},
		"403 and an HTML page":                   {answer(403, "<html>"), get, providers.ErrPermanent},
		"403, a quota by ErrorInfo only":         {answer(403, `{"error": {"code": 403, "message": "m", "details": [{"@type": "type.googleapis.com/google.rpc.ErrorInfo", "reason": "RATE_LIMIT_EXCEEDED"}]}}`), get, providers.ErrQuotaExceeded},
		"403, a quota by status only":            {answer(403, `{"error": {"code": 403, "message": "m", "status": "RESOURCE_EXHAUSTED"}}`), get, providers.ErrQuotaExceeded},
		"403, an API that is off":                {answer(403, `{"error": {"code": 403, "message": "m", "errors": [{"reason": "accessNotConfigured"}], "details": [{"reason": "SERVICE_DISABLED"}]}}`), get, providers.ErrPermanent},
		"403, userRateLimitExceeded":             {answer(403, `{"error": {"code": 403, "message": "m", "errors": [{"reason": "userRateLimitExceeded"}]}}`), get, providers.ErrQuotaExceeded},
		"403, a call without a project":          {answer(403, `{"error": {"code": 403, "message": "m", "errors": [{"reason": "dailyLimitExceededUnreg"}]}}`), get, providers.ErrPermanent},
		"400 and an unready network":             {answer(400, `{"error": {"code": 400, "message": "m", "errors": [{"reason": "resourceNotReady"}]}}`), create, providers.ErrTransient},
		"400, RESOURCE_NOT_READY by ErrorInfo":   {answer(400, `{"error": {"code": 400, "message": "m", "details": [{"reason": "RESOURCE_NOT_READY"}]}}`), create, providers.ErrTransient},
		"413":                                    {answer(413, `{"error": {"code": 413, "message": "m", "errors": [{"reason": "uploadTooLarge"}]}}`), create, providers.ErrPermanent},
		"408":                                    {answer(408, ""), get, providers.ErrTransient},
		"429 and an HTML page":                   {answer(429, "<html>"), get, providers.ErrQuotaExceeded},
		"502 and an HTML page":                   {answer(502, "<html>"), get, providers.ErrTransient},
		"503 and a full zone":                    {answer(503, `{"error": {"code": 503, "message": "m", "errors": [{"reason": "ZONE_RESOURCE_POOL_EXHAUSTED"}]}}`), create, providers.ErrQuotaExceeded},
		"an operation, a stockout":               {&failedOperation{"ZONE_RESOURCE_POOL_EXHAUSTED_WITH_DETAILS", "m", 503}, create, providers.ErrQuotaExceeded},
		"an operation, a stockout of a region":   {&failedOperation{"RESOURCE_POOL_EXHAUSTED", "m", 0}, create, providers.ErrQuotaExceeded},
		"an operation, a right":                  {&failedOperation{"PERMISSIONS_ERROR", "m", 403}, create, providers.ErrPermanent},
		"an operation, a missing image":          {&failedOperation{"RESOURCE_NOT_FOUND", "m", 404}, create, providers.ErrPermanent},
		"an operation without a status":          {&failedOperation{"INVALID_FIELD_VALUE", "m", 0}, create, providers.ErrPermanent},
		"an operation with an unknown code":      {&failedOperation{"SOMETHING_NEW", "m", 0}, create, providers.ErrTransient},
		"an operation, a quota, called 403":      {&failedOperation{"QUOTA_EXCEEDED", "m", 403}, create, providers.ErrQuotaExceeded},
		"what is known where it arises":          {permanent("x"), get, providers.ErrPermanent},
	} {
		require.Equal(t, c.want, classify(c.err, c.of), what)
		require.Equal(t, c.want, classify(clean(t.Context(), c.err), c.of), "%s, cleaned", what)
	}
}

func TestStockoutsAreToldFromOtherShortages(t *testing.T) {
	t.Parallel()
	for what, c := range map[string]struct {
		err  error
		want bool
	}{
		"an operation":     {&failedOperation{code: "ZONE_RESOURCE_POOL_EXHAUSTED"}, true},
		"at once":          {answer(503, `{"error": {"code": 503, "message": "m", "errors": [{"reason": "ZONE_RESOURCE_POOL_EXHAUSTED_WITH_DETAILS"}]}}`), true},
		"a quota":          {&failedOperation{code: "QUOTA_EXCEEDED"}, false},
		"a full subnet":    {&failedOperation{code: "IP_SPACE_EXHAUSTED_WITH_DETAILS"}, false},
		"a server":         {answer(503, `{"error": {"code": 503, "message": "m", "errors": [{"reason": "backendError"}]}}`), false},
		"no error of ours": {errors.New("ZONE_RESOURCE_POOL_EXHAUSTED"), false},
	} {
		require.Equal(t, c.want, isStockout(c.err), what)
	}
}

// A header, a body and details may repeat what was sent, so none of them is kept.
func TestCleanedErrorsHoldNothingOfTheRequest(t *testing.T) {
	t.Parallel()
	const secret = "s3ntinel"
	raw := googleapi.CheckResponse(&http.Response{
		StatusCode: 400, Header: http.Header{"X-Echo": {secret}}, Body: io.NopCloser(strings.NewReader(
			`{"error": {"code": 400, "message": "m", "errors": [{"reason": "invalid"}], "details": [{"reason": "R", "of": "` + secret + `"}]}}`)),
	})
	err := clean(t.Context(), raw)
	require.NotContains(t, fmt.Sprintf("%v %+v", err, err), secret)
	e, ok := errors.AsType[*googleapi.Error](err)
	require.True(t, ok, "the client's own error is within reach")
	require.NotContains(t, fmt.Sprintf("%#v", *e), secret)
	require.EqualError(t, err, "400 invalid, R: m")
	require.NotContains(t, clean(t.Context(), answer(502, "<p>"+secret)).Error(), secret)
}

func TestAMessageThatRepeatsUserDataIsWithheld(t *testing.T) {
	t.Parallel()
	const userData = "#cloud-config\npassword: s3ntinel-and-more\n"
	for what, c := range map[string]struct {
		message  string
		withheld bool
	}{
		"a line of it":     {"Invalid value: 'password: s3ntinel-and-more'", true},
		"all of it":        {"Invalid value: '" + userData + "'", true},
		"in base64":        {"Invalid value: 'I2Nsb3VkLWNvbmZpZwpwYXNzd29yZDogczNudGluZWwtYW5kLW1vcmUK'", true},
		"something else":   {"Machine type with name 'e2-huge' does not exist", false},
		"nothing at all":   {"", false},
		"a word of a line": {"password", false},
	} {
		err := withhold(&refusal{api: &googleapi.Error{Code: 400, Message: c.message}}, []byte(userData))
		require.Equal(t, c.withheld, strings.Contains(err.Error(), "is not shown"), what)
		if c.withheld {
			require.NotContains(t, err.Error(), "s3ntinel", what)
		}
	}
}
