package main

import (
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/egressfleet/egressfleet/testsuite/gcefake"
)

func TestTroublesOfTheCommand(t *testing.T) {
	t.Parallel()
	for path, want := range map[string]int{
		"stockout?zone=us-central1-a":            http.StatusNoContent,
		"cut?zone=us-central1-a":                 http.StatusNoContent,
		"late?failure=op-quota":                  http.StatusNoContent,
		"answer?method=instances.*&case=get-429": http.StatusNoContent,
		"answer?case=none":                       http.StatusBadRequest,
		"late?failure=get-429":                   http.StatusBadRequest,
		"preempt?zone=us-central1-a&name=none":   http.StatusNoContent,
		"heal":                                   http.StatusNoContent,
		"sleep":                                  http.StatusNotFound,
	} {
		mux := http.NewServeMux()
		mux.Handle("POST /admin/{trouble}", admin(gcefake.New(gcefake.Options{})))
		w := httptest.NewRecorder()
		mux.ServeHTTP(w, httptest.NewRequest(http.MethodPost, "/admin/"+path, nil))
		require.Equal(t, want, w.Code, path)
	}
}
