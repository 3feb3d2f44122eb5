package echo_test

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/egressfleet/egressfleet/internal/echo"
)

// serve returns the address of a server that ends with the test.
func serve(t *testing.T, s *echo.Server) string {
	t.Helper()
	l, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	ended := make(chan error, 1)
	go func() { ended <- s.Serve(ctx, l, slog.New(slog.DiscardHandler)) }()
	t.Cleanup(func() { cancel(); require.NoError(t, <-ended) })
	return l.Addr().String()
}

// get asks from an address of loopback.
func get(t *testing.T, from, url string, roots *x509.CertPool) (int, string, error) {
	t.Helper()
	local := &net.TCPAddr{IP: net.ParseIP(from)}
	transport := &http.Transport{
		DialContext:     (&net.Dialer{LocalAddr: local}).DialContext,
		TLSClientConfig: &tls.Config{RootCAs: roots, MinVersion: tls.VersionTLS12},
	}
	defer transport.CloseIdleConnections()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, nil)
	require.NoError(t, err)
	response, err := transport.RoundTrip(request)
	if err != nil {
		return 0, "", err
	}
	defer func() { _ = response.Body.Close() }()
	body, err := io.ReadAll(response.Body)
	require.NoError(t, err)
	return response.StatusCode, string(body), nil
}

func TestEachClientIsToldItsOwnAddress(t *testing.T) {
	t.Parallel()
	s, err := echo.New()
	require.NoError(t, err)
	address := serve(t, s)
	for _, from := range []string{"127.0.0.1", "127.20.30.40"} {
		code, body, err := get(t, from, "https://"+address+echo.Path, s.Roots())
		require.NoError(t, err)
		require.Equal(t, http.StatusOK, code)
		require.JSONEq(t, `{"ip":"`+from+`"}`, body)
	}
	code, _, err := get(t, "127.0.0.1", "https://"+address+"/elsewhere", s.Roots())
	require.NoError(t, err)
	require.Equal(t, http.StatusNotFound, code)
}

func TestNobodyElsesCertificateIsTrusted(t *testing.T) {
	t.Parallel()
	s, err := echo.New()
	require.NoError(t, err)
	other, err := echo.New()
	require.NoError(t, err)
	address := serve(t, s)
	_, _, err = get(t, "127.0.0.1", "https://"+address, other.Roots())
	require.ErrorAs(t, err, new(x509.UnknownAuthorityError))
	elsewhere, err := echo.New("target.example")
	require.NoError(t, err)
	_, _, err = get(t, "127.0.0.1", "https://"+serve(t, elsewhere), elsewhere.Roots())
	require.ErrorAs(t, err, new(x509.HostnameError))
}

func TestAProberInAnotherProcessReadsTheCertificateFromAFile(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "echo.pem")
	for range 2 { // the second process has another certificate
		s, err := echo.New()
		require.NoError(t, err)
		require.NoError(t, s.WriteCertificate(file))
		roots, err := echo.ReadRoots(file)
		require.NoError(t, err)
		_, _, err = get(t, "127.0.0.1", "https://"+serve(t, s), roots)
		require.NoError(t, err)
	}
	text, err := os.ReadFile(file)
	require.NoError(t, err)
	require.NotContains(t, string(text), "KEY")
	entries, err := os.ReadDir(filepath.Dir(file))
	require.NoError(t, err)
	require.Len(t, entries, 1, "nothing else is left there")
}

func TestAFileThatIsNoCertificateIsNamed(t *testing.T) {
	t.Parallel()
	_, err := echo.ReadRoots("/nowhere/echo.pem")
	require.ErrorIs(t, err, os.ErrNotExist)
	file := filepath.Join(t.TempDir(), "echo.pem")
	require.NoError(t, os.WriteFile(file, []byte("nothing"), 0o600))
	_, err = echo.ReadRoots(file)
	require.ErrorContains(t, err, file+" holds no certificate")
	s, err := echo.New()
	require.NoError(t, err)
	require.ErrorContains(t, s.WriteCertificate("/nowhere/echo.pem"), "/nowhere")
}
