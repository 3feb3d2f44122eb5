package server_test

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/egressfleet/egressfleet/api/server"
	v1 "github.com/egressfleet/egressfleet/api/v1"
)

func TestAWholeAnswerArrivesWhole(t *testing.T) {
	t.Parallel()
	// By the size of what net/http keeps back: nothing, a little, about as much, and more.
	for _, n := range []int{0, 1, 80, 90, 150, 170, 200, 20_000} {
		s := newStage(many(n)...)
		l := run(t, s, server.Limits{})
		l.tick(t)
		for range 2 { // on one connection
			for _, query := range []string{"?format=txt", "", "?format=txt&healthy=true"} {
				want := s.ask(t, "GET", listPath+query, "")
				require.Equal(t, 200, want.Code)
				require.Equal(t, want.Body.String(), l.fetch(t, "GET", query), "%d proxies, %q", n, query)
				require.Empty(t, l.fetch(t, "HEAD", query))
			}
		}
	}
}

// A connection of TLS gathers nothing, and net/http asks it for HTTP/2 where it can.
func TestAWholeAnswerArrivesWholeByTLS(t *testing.T) {
	t.Parallel()
	lends := httptest.NewTLSServer(http.NotFoundHandler()) // a certificate, and a client that trusts it
	defer lends.Close()
	s := newStage(many(2_000)...)
	s.tls = &tls.Config{Certificates: lends.TLS.Certificates, MinVersion: tls.VersionTLS12}
	l := run(t, s, server.Limits{})
	l.tick(t)
	for proto, client := range map[string]*http.Client{"HTTP/1.1": lends.Client(), "HTTP/2.0": bothOf(t, lends)} {
		for _, query := range []string{"?format=txt", ""} {
			answer, err := client.Get("https://" + l.address + listPath + query) //nolint:noctx // the server is ours
			require.NoError(t, err)
			body, err := io.ReadAll(answer.Body)
			require.NoError(t, errors.Join(err, answer.Body.Close()))
			require.Equal(t, proto, answer.Proto)
			require.Equal(t, s.ask(t, "GET", listPath+query, "").Body.String(), string(body))
			require.NotEmpty(t, body)
		}
	}
}

// bothOf is a client that trusts the same certificate and speaks HTTP/2.
func bothOf(t *testing.T, lends *httptest.Server) *http.Client {
	t.Helper()
	transport, ok := lends.Client().Transport.(*http.Transport)
	require.True(t, ok)
	transport = transport.Clone()
	transport.ForceAttemptHTTP2 = true
	t.Cleanup(transport.CloseIdleConnections)
	return &http.Client{Transport: transport}
}

// many are so many proxies that run.
func many(n int) []v1.Proxy {
	all := make([]v1.Proxy, n)
	for i := range all {
		all[i] = running("default", fmt.Sprintf("p%05d", i), fmt.Sprintf("10.0.%d.%d", i>>8, i&255))
	}
	return all
}

// fetch returns the body of an answer that came by a connection.
func (l *live) fetch(t *testing.T, method, query string) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, method, "http://"+l.address+listPath+query, nil)
	require.NoError(t, err)
	answer, err := http.DefaultClient.Do(r)
	require.NoError(t, err)
	defer func() { _ = answer.Body.Close() }()
	body, err := io.ReadAll(answer.Body)
	require.NoError(t, err)
	require.Equal(t, 200, answer.StatusCode)
	return string(body)
}
