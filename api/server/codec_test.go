package server_test

import (
	"bytes"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/egressfleet/egressfleet/api/server"
)

func TestTheCodecIsServedWhereThereIsOne(t *testing.T) {
	t.Parallel()
	echo := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		_, _ = w.Write([]byte(r.Method + " " + r.URL.Path + " " + string(body)))
	})
	var log bytes.Buffer
	with := server.New(newFleet(), server.Options{Codec: echo, Logger: slog.New(slog.NewTextHandler(&log, nil))})
	for _, method := range []string{http.MethodPost, http.MethodOptions} {
		w := httptest.NewRecorder()
		with.Handler().ServeHTTP(w, httptest.NewRequest(method, "/codec/decode", strings.NewReader("s3nt1nel")))
		require.Equal(t, method+" /codec/decode s3nt1nel", w.Body.String())
		require.Equal(t, "no-store", w.Header().Get("Cache-Control"), "nobody keeps what was decrypted")
	}
	require.Contains(t, log.String(), "route=/codec/*")
	require.NotContains(t, log.String(), "s3nt1nel")

	w := httptest.NewRecorder()
	server.New(newFleet(), server.Options{}).Handler().
		ServeHTTP(w, httptest.NewRequest(http.MethodPost, "/codec/decode", nil))
	require.Equal(t, http.StatusNotFound, w.Code)
	require.Contains(t, w.Body.String(), "no-such-route")
}
