package server_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	v1 "github.com/egressfleet/egressfleet/api/v1"
	"github.com/egressfleet/egressfleet/starter/fleet"
)

// sentinel is a secret in a cloud-init, and in base64. Neither may come out again.
const (
	sentinel       = "s3nt1n3l-cloud-init"
	sentinelBase64 = "czNudDFuM2wtY2xvdWQtaW5pdA=="
)

var bodiesWithSecrets = map[string]string{
	"good":           `{"spec": {"provider": "gcp", "port": 1, "cloudInit": {"inline": "%s"}}}`,
	"good in base64": `{"spec": {"provider": "gcp", "port": 1, "cloudInit": {"inlineBase64": "%[2]s"}}}`,
	"bad port":       `{"spec": {"provider": "gcp", "port": 0, "cloudInit": {"inline": "%s"}}}`,
	"two kinds": `{"spec": {"provider": "gcp", "port": 1,
		"cloudInit": {"inline": "%s", "inlineBase64": "%[2]s"}}}`,
	"bad base64":                  `{"spec": {"provider": "gcp", "port": 1, "cloudInit": {"inlineBase64": "%s!"}}}`,
	"twice":                       `{"spec": {"cloudInit": {"inline": "a", "inline": "%s"}}}`,
	"twice, the first the secret": `{"spec": {"cloudInit": {"inline": "%s", "inline": "a"}}}`,
	"in an array":                 `{"spec": {"cloudInit": {"inline": ["%s"]}}}`,
	"in an object":                `{"spec": {"cloudInit": {"inline": {"%s": 1}}}}`,
	"as the cloud-init":           `{"spec": {"cloudInit": "%s"}}`,
	"as a list of cloud-inits":    `{"spec": {"cloudInit": ["%s"]}}`,
	"under a mistyped name":       `{"spec": {"cloudInit": {"inlin": "%s"}}}`,
	"as a name":                   `{"spec": {"cloudInit": {"#cloud-config %s": 1}}}`,
	"as the reference":            `{"spec": {"cloudInit": {"secretRef": "%s"}}}`,
	"in the reference":            `{"spec": {"cloudInit": {"secretRef": {"content": "%s"}}}}`,
	"beside the cloud-init":       `{"spec": {"inline": "%s"}}`,
	"under a name of the spec":    `{"spec": {"userData": "%s"}}`,
	"in the placement":            `{"spec": {"placement": {"inline": "%s"}}}`,
	"a document in the placement": `{"spec": {"placement": {"userData": "#cloud-config\n%s"}}}`,
	"as the placement":            `{"spec": {"placement": "%s"}}`,
	"as the spec":                 `{"spec": "%s"}`,
	"at the top":                  `{"cloudInit": "%s"}`,
	"in an object at the top":     `{"cloudInit": {"inline": "%s"}}`,
	"as the body":                 `"%s"`,
	"as the body, not quoted":     `%s`,
	"cut off":                     `{"spec": {"cloudInit": {"inline": "%s`,
	"with a bad escape":           `{"spec": {"cloudInit": {"inline": "%s\q"}}}`,
	"with a lone surrogate":       `{"spec": {"cloudInit": {"inline": "%s\ud800"}}}`,
	"with a byte of no UTF-8":     "{\"spec\": {\"cloudInit\": {\"inline\": \"%s\xff\"}}}",
	"after the value":             `{"spec": {}} "%s"`,
	"in the status, ignored":      `{"status": {"x": "%s"}, "spec": {"provider": "gcp", "port": 1}}`,
}

func TestACloudInitNeverComesOut(t *testing.T) {
	t.Parallel()
	for name, body := range bodiesWithSecrets {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newStage()
			answer := s.ask(t, "PUT", proxyA, strings.NewReplacer("%[2]s", sentinelBase64, "%s", sentinel).Replace(body))
			for _, request := range []string{"GET", "DELETE", "PUT"} {
				again := s.ask(t, request, proxyA, minimal)
				list := s.ask(t, "GET", "/v1/namespaces/default/proxies", "")
				for _, said := range []string{answer.Body.String(), again.Body.String(), list.Body.String(), s.log.String()} {
					require.NotContains(t, said, sentinel)
					require.NotContains(t, said, sentinelBase64)
				}
			}
		})
	}
}

func TestTheLogTellsWhatTheClientIsNot(t *testing.T) {
	t.Parallel()
	s := newStage()
	s.fleet.fail = errors.New("dial 192.0.2.1: refused")
	answer := s.ask(t, "GET", proxyA, "")
	require.Equal(t, 500, answer.Code)
	require.NotContains(t, answer.Body.String(), "192.0.2.1")
	require.Contains(t, s.log.String(), "192.0.2.1")
	require.Contains(t, s.log.String(), `"level":"ERROR"`)
}

func TestTheLogNamesTheRouteAndNotTheValues(t *testing.T) {
	t.Parallel()
	s := newStage(running("default", "a", "203.0.113.7"))
	s.ask(t, "GET", proxyA+"?token=s3cret", "")
	require.Contains(t, s.log.String(), `"level":"INFO","msg":"request","method":"GET",`+
		`"route":"/v1/namespaces/:namespace/proxies/:name","status":400,"duration":0`)
	require.NotContains(t, s.log.String(), "s3cret")
	s.ask(t, "GET", "/v1/s3cret/path", "")
	require.NotContains(t, s.log.String(), "s3cret")
	s.ask(t, "GET", proxyA, "")
	require.Contains(t, s.log.String(), `"level":"DEBUG","msg":"request","method":"GET"`)
}

func TestTheLogSaysWhichProxyAndWhatWasWrong(t *testing.T) {
	t.Parallel()
	s := newStage(running("default", "a", "203.0.113.7"))
	s.ask(t, "PUT", proxyA, `{"spec": {"provider": "S3cret", "port": 1}}`)
	require.Contains(t, s.log.String(), `"status":422,"duration":0,"namespace":"default","name":"a",`+
		`"problem":"invalid-field","field":"spec.provider"}`)
	s.ask(t, "GET", "/v1/namespaces/other/proxies/S3cret", "")
	require.Contains(t, s.log.String(), `"namespace":"other","problem":"invalid-field","field":"metadata.name"}`)
	require.NotContains(t, s.log.String(), "S3cret")
	s.fleet.fail = fleet.ErrNoWorker
	s.ask(t, "GET", proxyA, "")
	require.Contains(t, s.log.String(), `"name":"a","problem":"unavailable","error":"`)
}

func TestAPanicIsLoggedAndTheNextRequestIsServed(t *testing.T) {
	t.Parallel()
	s := newStage(running("default", "a", "203.0.113.7"))
	s.fleet.boom = "index out of range"
	require.Equal(t, refusal{500, "internal", "", ""}, told(t, s.ask(t, "GET", proxyA, "")))
	require.Contains(t, s.log.String(), "index out of range")
	require.Contains(t, s.log.String(), "handlers.go")
	s.fleet.boom = nil
	require.Equal(t, 200, s.ask(t, "GET", proxyA, "").Code)
}

func TestWhatIsMaskedIsACopy(t *testing.T) {
	t.Parallel()
	p := running("default", "a", "203.0.113.7")
	p.Spec.CloudInit = v1.CloudInit{Inline: sentinel}
	s := newStage(p)
	s.ask(t, "GET", proxyA, "")
	require.Equal(t, sentinel, s.fleet.proxies["default/a"].Spec.CloudInit.Inline)
}
