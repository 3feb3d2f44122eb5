package server_test

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/egressfleet/egressfleet/api/server/openapi"
)

// deafWriter is a client that went away.
type deafWriter struct {
	*httptest.ResponseRecorder
	writes int
}

func (w *deafWriter) Write([]byte) (int, error) {
	w.writes++
	return 0, errors.New("broken pipe")
}

func TestAClientThatWentAwayIsNotAnsweredTwice(t *testing.T) {
	t.Parallel()
	s := newStage(running("default", "a", "203.0.113.7"))
	w := &deafWriter{ResponseRecorder: httptest.NewRecorder()}
	s.server.Handler().ServeHTTP(w,
		httptest.NewRequestWithContext(t.Context(), http.MethodGet, "http://localhost"+proxyA, nil))
	require.Equal(t, 1, w.writes)
	require.Equal(t, 200, w.Code)
}

func TestAHandlerThatAbortsIsLeftToNetHTTP(t *testing.T) {
	t.Parallel()
	s := newStage()
	s.fleet.boom = http.ErrAbortHandler
	require.PanicsWithValue(t, http.ErrAbortHandler, func() { s.ask(t, "GET", proxyA, "") })
}

func TestAPathThatIsVeryLongIsNotRepeated(t *testing.T) {
	t.Parallel()
	for path, want := range map[string]string{
		"/" + strings.Repeat("x", 499): "/" + strings.Repeat("x", 499),
		"/" + strings.Repeat("x", 500): "",
	} {
		var document openapi.Problem
		require.NoError(t, json.Unmarshal(newStage().ask(t, "GET", path, "").Body.Bytes(), &document))
		require.Equal(t, want, document.Instance)
	}
}

func TestWhatIsNotThereIsSoAlsoForAClientThatHasGone(t *testing.T) {
	t.Parallel()
	gone, cancel := context.WithCancel(t.Context())
	cancel()
	require.Equal(t, http.StatusNotFound, newStage().askWithin(gone, "GET", "/nowhere", "").Code)
	require.Equal(t, http.StatusMethodNotAllowed, newStage().askWithin(gone, "BREW", proxyA, "").Code)
}
