package realserver

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/egressfleet/egressfleet/api/access"
	"github.com/egressfleet/egressfleet/api/client"
	apiserver "github.com/egressfleet/egressfleet/api/server"
	v1 "github.com/egressfleet/egressfleet/api/v1"
)

const clientToken = "t0ken-of-the-client"

// clientLab is a fleet with an API that asks for a token, and a client that shows one.
type clientLab struct {
	*feedbackLab
	*client.ClientWithResponses
	address string
	name    string // of a proxy of the test's own
	asked   map[string]bool
}

func newClientLab(t *testing.T) *clientLab {
	t.Helper()
	f := newFeedbackLab(t, 1)
	sum := sha256.Sum256([]byte(clientToken))
	path := filepath.Join(t.TempDir(), "tokens.yaml")
	require.NoError(t, os.WriteFile(path,
		[]byte("tokens:\n- {name: client, sha256: "+hex.EncodeToString(sum[:])+", scopes: [admin]}\n"), 0o600))
	keys, err := access.Open(path, nil, nil)
	require.NoError(t, err)
	s := apiserver.New(f.fleet, apiserver.Options{Keys: keys, Providers: func() (v1.ProviderList, bool) {
		return v1.ProviderList{Items: []v1.Provider{{Name: f.name, Type: "fake"}}}, true
	}})
	listener, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- s.Run(ctx, listener) }()
	t.Cleanup(func() {
		cancel()
		require.NoError(t, <-ended)
	})
	l := &clientLab{
		feedbackLab: f, address: "http://" + listener.Addr().String(), name: f.name + "-mine", asked: map[string]bool{},
	}
	l.ClientWithResponses, err = client.NewClientWithResponses(l.address, client.WithToken(clientToken))
	require.NoError(t, err)
	return l
}

// answered is what every method of the client returns.
type answered interface{ StatusCode() int }

// is notes that a method was asked, and returns its answer, of which it requires the status.
func is[A answered](l *clientLab, status int, method string, answer A, err error) A {
	l.t.Helper()
	require.NoError(l.t, err, method)
	body := reflect.ValueOf(answer).Elem().FieldByName("Body").Bytes()
	require.Equal(l.t, status, answer.StatusCode(), "%s: %s", method, body)
	require.Equal(l.t, status < http.StatusBadRequest, client.ProblemOf(status, body) == nil, method)
	l.asked[method] = true
	return answer
}

func TestTheClientAsksARealFleetForEverything(t *testing.T) {
	l := newClientLab(t)
	ctx, wait := t.Context(), new("30s")
	input := client.ProxyInput{Spec: v1.ProxySpec{Provider: l.lab.name, Port: 3128}}

	ready := func() bool {
		answer, err := l.GetReadinessWithResponse(ctx)
		return err == nil && answer.StatusCode() == http.StatusOK
	}
	require.Eventually(t, ready, soon, tick)
	health, err := l.GetHealthWithResponse(ctx)
	is(l, http.StatusOK, "GetHealth", health, err)
	readiness, err := l.GetReadinessWithResponse(ctx)
	is(l, http.StatusOK, "GetReadiness", readiness, err)

	applied, err := l.ApplyProxyWithResponse(ctx, "default", l.name, &client.ApplyProxyParams{Wait: wait}, input)
	made := is(l, http.StatusCreated, "ApplyProxy", applied, err).JSON201
	require.Equal(t, v1.PhaseRunning, made.Status.Phase)
	got, err := l.GetProxyWithResponse(ctx, "default", l.name)
	require.Equal(t, made.Metadata.UID, is(l, http.StatusOK, "GetProxy", got, err).JSON200.Metadata.UID)
	l.lists(ctx)
	l.messages(ctx)
	l.discovers(ctx)

	providers, err := l.ListProvidersWithResponse(ctx)
	require.Equal(t, l.lab.name, is(l, http.StatusOK, "ListProviders", providers, err).JSON200.Items[0].Name)
	gone, err := l.DeleteProxyWithResponse(ctx, "default", l.name, &client.DeleteProxyParams{Wait: wait})
	is(l, http.StatusNoContent, "DeleteProxy", gone, err)

	methods := reflect.TypeFor[client.ClientWithResponsesInterface]()
	for i := range methods.NumMethod() {
		if name := strings.TrimSuffix(methods.Method(i).Name, "WithResponse"); !strings.HasSuffix(name, "WithBody") {
			require.True(t, l.asked[name], "nobody has asked %s", name)
		}
	}
}

// lists asks for the proxies, once Visibility has them.
func (l *clientLab) lists(ctx context.Context) {
	provider := l.lab.name
	one := func(method string, items []v1.Proxy) {
		require.Len(l.t, items, 1, method)
		require.Equal(l.t, provider, items[0].Spec.Provider, method)
	}
	mine := func() bool {
		answer, err := l.ListProxiesWithResponse(ctx, "default", &client.ListProxiesParams{Provider: &provider})
		return err == nil && answer.StatusCode() == http.StatusOK && len(answer.JSON200.Items) == 2
	}
	require.Eventually(l.t, mine, soon, tick)
	limit := new(1)
	listed, err := l.ListProxiesWithResponse(ctx, "default", &client.ListProxiesParams{Provider: &provider, Limit: limit})
	one("ListProxies", is(l, http.StatusOK, "ListProxies", listed, err).JSON200.Items)
	all, err := l.ListAllProxiesWithResponse(ctx, &client.ListAllProxiesParams{Provider: &provider, Limit: limit})
	one("ListAllProxies", is(l, http.StatusOK, "ListAllProxies", all, err).JSON200.Items)
}

// messages sends each message, and reads what became of them.
func (l *clientLab) messages(ctx context.Context) {
	held, err := l.HoldProxyWithResponse(ctx, "default", l.name, nil, v1.Hold{Reason: "test", For: "1h"})
	require.True(l.t, is(l, http.StatusOK, "HoldProxy", held, err).JSON200.Status.Held)
	resumed, err := l.ResumeProxyWithResponse(ctx, "default", l.name, nil, v1.Why{Reason: "test"})
	require.False(l.t, is(l, http.StatusOK, "ResumeProxy", resumed, err).JSON200.Status.Held)
	retried, err := l.RetryProxyWithResponse(ctx, "default", l.name, nil, v1.Why{Reason: "test"})
	is(l, http.StatusAccepted, "RetryProxy", retried, err)
	replaced, err := l.ReplaceProxyWithResponse(ctx, "default", l.name,
		&client.ReplaceProxyParams{IdempotencyKey: new("once")}, v1.Why{Reason: "test"})
	is(l, http.StatusAccepted, "ReplaceProxy", replaced, err)
	told, err := l.GetTimelineWithResponse(ctx, "default", l.name)
	require.NotEmpty(l.t, is(l, http.StatusOK, "GetTimeline", told, err).JSON200.Items)
}

// discovers asks as crawlers do.
func (l *clientLab) discovers(ctx context.Context) {
	provider, name := l.lab.name, "default/"+l.names[0]
	found := func() bool {
		answer, err := l.GetDiscoveryWithResponse(ctx, &client.GetDiscoveryParams{Provider: &provider})
		return err == nil && strings.Contains(string(answer.Body), `"`+l.names[0]+`"`)
	}
	require.Eventually(l.t, found, soon, tick)
	listed, err := l.GetDiscoveryWithResponse(ctx, &client.GetDiscoveryParams{Provider: &provider})
	is(l, http.StatusOK, "GetDiscovery", listed, err)
	etag := listed.HTTPResponse.Header.Get("ETag")
	known, err := l.GetDiscoveryWithResponse(ctx, &client.GetDiscoveryParams{Provider: &provider, IfNoneMatch: &etag})
	require.NoError(l.t, err)
	require.Contains(l.t, []int{http.StatusOK, http.StatusNotModified}, known.StatusCode(), "what is replaced may be back")
	picked, err := l.PickProxyWithResponse(ctx, &client.PickProxyParams{Provider: &provider})
	require.NotNil(l.t, is(l, http.StatusOK, "PickProxy", picked, err).JSON200.Proxy)
	reported, err := l.ReportProxyWithResponse(ctx, &client.ReportProxyParams{Provider: &provider},
		v1.Report{Proxy: name, Domain: "site.example", Kind: v1.ReportBanned})
	require.True(l.t, is(l, http.StatusOK, "ReportProxy", reported, err).JSON200.Counted)

	// The method reads to the end of a stream that has none, so a client that knows that asks below it.
	streaming, stop := context.WithTimeout(ctx, soon)
	defer stop()
	answer, err := l.WatchDiscovery(streaming, &client.WatchDiscoveryParams{Provider: &provider})
	require.NoError(l.t, err)
	defer func() { _ = answer.Body.Close() }()
	require.Equal(l.t, "text/event-stream", answer.Header.Get("Content-Type"))
	refused, err := l.WatchDiscoveryWithResponse(ctx, &client.WatchDiscoveryParams{Labels: new("a in b")})
	problem := is(l, http.StatusUnprocessableEntity, "WatchDiscovery", refused, err).ApplicationproblemJSON422
	require.Equal(l.t, "labels", *problem.Field)
}

func TestTheClientTellsAProblemAsAValue(t *testing.T) {
	l := newClientLab(t)
	ctx := t.Context()
	input := client.ProxyInput{Spec: v1.ProxySpec{Provider: l.lab.name}}
	bad, err := l.ApplyProxyWithResponse(ctx, "default", l.name, nil, input)
	problem := is(l, http.StatusUnprocessableEntity, "ApplyProxy", bad, err).ApplicationproblemJSON422
	require.Equal(t, "urn:egressfleet:problem:invalid-field", problem.Type)
	require.Equal(t, []string{"spec.port", "0"}, []string{*problem.Field, *problem.Value})
	input.Spec.Port = 3128
	old := &client.ApplyProxyParams{IfMatch: new(`"7"`)}
	stale, err := l.ApplyProxyWithResponse(ctx, "default", l.names[0], old, input)
	require.Equal(t, "urn:egressfleet:problem:precondition-failed",
		is(l, http.StatusPreconditionFailed, "ApplyProxy", stale, err).ApplicationproblemJSON412.Type)
	elsewhere := client.ProxyInput{Spec: v1.ProxySpec{Provider: "else", Port: 3128}}
	moved, err := l.ApplyProxyWithResponse(ctx, "default", l.names[0], nil, elsewhere)
	problem = (*client.Problem)(is(l, http.StatusConflict, "ApplyProxy", moved, err).ApplicationproblemJSON409)
	require.Equal(t, "spec.provider", *problem.Field)
	none, err := l.GetProxyWithResponse(ctx, "default", "nobody")
	require.Equal(t, "nobody", *is(l, http.StatusNotFound, "GetProxy", none, err).ApplicationproblemJSON404.Value)
	gone, err := l.DeleteProxyWithResponse(ctx, "default", "nobody", nil)
	is(l, http.StatusNotFound, "DeleteProxy", gone, err)

	stranger, err := client.NewClientWithResponses(l.address, client.WithToken("another"))
	require.NoError(t, err)
	refused, err := stranger.ListAllProxiesWithResponse(ctx, nil)
	is(l, http.StatusUnauthorized, "ListAllProxies", refused, err)
	var told *client.Problem
	require.ErrorAs(t, client.ProblemOf(refused.StatusCode(), refused.Body), &told)
	require.Equal(t, "urn:egressfleet:problem:unauthenticated", told.Type)
	nobody, err := client.NewClientWithResponses("http://127.0.0.1:1")
	require.NoError(t, err)
	late, cancel := context.WithTimeout(ctx, time.Second)
	defer cancel()
	_, err = nobody.GetHealthWithResponse(late)
	require.Error(t, err, "nobody has answered")
}
