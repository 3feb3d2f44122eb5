package gcp

import (
	"context"
	"encoding/json"
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
		`{"error": {"code": 404, "message": "The resource '%s' was not found", "errors": [{"reason": "notFound"}]}}`,
		resource))
}

// says is an answer with a reason, and those of its ErrorInfo.
func says(status int, reason string, infos ...string) error {
	of := map[string]any{"code": status, "message": "m"}
	if reason != "" {
		of["errors"] = []map[string]string{{"reason": reason}}
	}
	var details []map[string]string
	for _, info := range infos {
		details = append(details, map[string]string{"@type": "…/google.rpc.ErrorInfo", "reason": info})
	}
	of["details"] = details
	text, err := json.Marshal(map[string]any{"error": of})
	if err != nil {
		panic(err)
	}
	return answer(status, string(text))
}

// worded is an answer with the word for its status and no reason.
func worded(status int, word string) error {
	return answer(status, fmt.Sprintf(`{"error": {"code": %d, "message": "m", "status": %q}}`, status, word))
}

// What was not captured, by the same rules as what was.
func TestClassify(t *testing.T) {
	t.Parallel()
	const (
		gone, scarce  = providers.ErrNotFound, providers.ErrQuotaExceeded
		passes, lasts = providers.ErrTransient, providers.ErrPermanent
	)
	const name = "zones/us-central1-a/instances/proxy-a"
	get, create, list := about{providers.OpGet, name}, about{op: providers.OpCreate}, about{op: providers.OpList}
	for what, c := range map[string]struct {
		err  error
		of   about
		want providers.Class
	}{
		"no error of Compute Engine at all":      {errors.New("odd"), get, passes},
		"a network":                              {&url.Error{Op: "Get", URL: "u", Err: io.EOF}, get, passes},
		"a call that was called off":             {context.Canceled, get, passes},
		"a call that was slow":                   {errSlow, get, passes},
		"the instance, by the project's number":  {missing("projects/123456789012/" + name), get, gone},
		"an instance with a longer name":         {missing("projects/p/" + name + "bc"), get, lasts},
		"an instance with a longer name, dashed": {missing("projects/p/" + name + "-b"), get, lasts},
		"the same name in another zone":          {missing("projects/p/zones/x/instances/proxy-a"), get, lasts},
		"the zone":                               {missing("projects/p/zones/us-central1-a"), get, lasts},
		"the project":                            {missing("projects/p"), get, lasts},
		"an operation":                           {missing("projects/p/zones/us-central1-a/operations/o"), get, passes},
		"something without a name":               {worded(404, "NOT_FOUND"), get, passes},
		"an HTML 404":                            {answer(404, "<!DOCTYPE html>"), get, passes},
		"an HTML 404 that names the instance":    {answer(404, "<p>/"+name+"</p>"), get, passes},
		"an empty 404":                           {answer(404, ""), get, passes},
		"an empty object with 404":               {answer(404, "{}"), get, passes},
		"the instance, of a create":              {missing("projects/p/" + name), create, lasts},
		"a list without its project":             {missing("projects/p"), list, lasts},
		"403 without a reason":                   {worded(403, ""), get, lasts},
		"403 and an HTML page":                   {answer(403, "<html>"), get, lasts},
		"403, a quota by ErrorInfo only":         {says(403, "", "RATE_LIMIT_EXCEEDED"), get, scarce},
		"403, a quota by status only":            {worded(403, "RESOURCE_EXHAUSTED"), get, scarce},
		"403, an API that is off":                {says(403, "accessNotConfigured", "SERVICE_DISABLED"), get, lasts},
		"403, userRateLimitExceeded":             {says(403, "userRateLimitExceeded"), get, scarce},
		"403, a call without a project":          {says(403, "dailyLimitExceededUnreg"), get, lasts},
		"400 and an unready network":             {says(400, "resourceNotReady"), create, passes},
		"400, RESOURCE_NOT_READY by ErrorInfo":   {says(400, "", "RESOURCE_NOT_READY"), create, passes},
		"413":                                    {says(413, "uploadTooLarge"), create, lasts},
		"408":                                    {answer(408, ""), get, passes},
		"429 and an HTML page":                   {answer(429, "<html>"), get, scarce},
		"502 and an HTML page":                   {answer(502, "<html>"), get, passes},
		"503 and a full zone":                    {says(503, "ZONE_RESOURCE_POOL_EXHAUSTED"), create, scarce},
		"an operation, a stockout": {
			&failedOperation{"ZONE_RESOURCE_POOL_EXHAUSTED_WITH_DETAILS", "m", 503}, create, scarce,
		},
		"an operation, a stockout of a region": {&failedOperation{"RESOURCE_POOL_EXHAUSTED", "m", 0}, create, scarce},
		"an operation, a right":                {&failedOperation{"PERMISSIONS_ERROR", "m", 403}, create, lasts},
		"an operation, a missing image":        {&failedOperation{"RESOURCE_NOT_FOUND", "m", 404}, create, lasts},
		"an operation without a status":        {&failedOperation{"INVALID_FIELD_VALUE", "m", 0}, create, lasts},
		"an operation with an unknown code":    {&failedOperation{"SOMETHING_NEW", "m", 0}, create, passes},
		"an operation, a quota, called 403":    {&failedOperation{"QUOTA_EXCEEDED", "m", 403}, create, scarce},
		"what is known where it arises":        {permanent("x"), get, lasts},
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
		"at once":          {says(503, "ZONE_RESOURCE_POOL_EXHAUSTED_WITH_DETAILS"), true},
		"a quota":          {&failedOperation{code: "QUOTA_EXCEEDED"}, false},
		"a full subnet":    {&failedOperation{code: "IP_SPACE_EXHAUSTED_WITH_DETAILS"}, false},
		"a server":         {says(503, "backendError"), false},
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
			`{"error": {"code": 400, "message": "m", "errors": [{"reason": "invalid"}],` +
				` "details": [{"reason": "R", "of": "` + secret + `"}]}}`)),
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
