//go:build linux

package main

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestOnlyABusyWorkerMissesAList(t *testing.T) {
	t.Parallel()
	says := func(code int) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(code) }
	}
	for name, row := range map[string]struct {
		answer   http.HandlerFunc
		patience time.Duration
		missed   bool
	}{
		"it knows no list that is new enough": {says(http.StatusServiceUnavailable), time.Minute, true},
		"it does not answer in time": {
			func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }, 10 * time.Millisecond, true,
		},
		"it has a fault": {says(http.StatusInternalServerError), time.Minute, false},
		"it breaks off in the answer": {
			func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }, time.Minute, false,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			api := httptest.NewServer(row.answer)
			t.Cleanup(api.Close)
			ctx, cancel := context.WithTimeout(t.Context(), row.patience)
			defer cancel()
			_, err := ask(ctx, http.MethodGet, api.URL, "")
			require.Error(t, err)
			require.Equal(t, row.missed, missed(err), err)
		})
	}
	require.False(t, missed(errors.New("connection refused")))
}
