package client_test

import (
	"io"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/egressfleet/egressfleet/api/client"
	v1 "github.com/egressfleet/egressfleet/api/v1"
)

func TestTheClientShowsItsTokenAndReadsThePublicWords(t *testing.T) {
	t.Parallel()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Authorization") != "Bearer s3cret" || r.URL.Path != "/v1/namespaces/default/proxies" ||
			r.URL.RawQuery != "phase=Running&limit=1" {
			http.Error(w, r.URL.String(), http.StatusTeapot)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, `{"items": [{"metadata": {"namespace": "default", "name": "a"},
			"spec": {"provider": "local", "port": 3128}, "status": {"phase": "Running"}}], "continue": "next"}`)
	}))
	t.Cleanup(server.Close)
	c, err := client.NewClientWithResponses(server.URL, client.WithToken("s3cret"))
	require.NoError(t, err)
	answer, err := c.ListProxiesWithResponse(t.Context(), "default", &client.ListProxiesParams{
		Limit: new(1), Phase: new(client.ListPhase(v1.PhaseRunning)),
	})
	require.NoError(t, err)
	require.Equal(t, http.StatusOK, answer.StatusCode(), "%s", answer.Body)
	require.Len(t, answer.JSON200.Items, 1)
	require.Equal(t, v1.PhaseRunning, answer.JSON200.Items[0].Status.Phase)
}

func TestWhatIsNoSuccessIsAProblem(t *testing.T) {
	t.Parallel()
	const told = `{"type": "urn:egressfleet:problem:conflict", "title": "Conflict", "status": 409, "detail": "no"}`
	require.NoError(t, client.ProblemOf(http.StatusNotModified, nil))
	err := client.ProblemOf(http.StatusConflict, []byte(told))
	var problem *client.Problem
	require.ErrorAs(t, err, &problem)
	require.Equal(t, "urn:egressfleet:problem:conflict", problem.Type)
	require.EqualError(t, err, "no (urn:egressfleet:problem:conflict, 409)")
	for _, other := range []string{"", "<html>", "{}", `{"type": 1}`, "null"} {
		err := client.ProblemOf(http.StatusBadGateway, []byte(other))
		require.ErrorContains(t, err, "502 Bad Gateway: ", other)
		require.NotErrorAs(t, err, &problem, other)
	}
}
