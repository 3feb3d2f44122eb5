package main

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"log/slog"
	"math/big"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/egressfleet/egressfleet/api/server"
	"github.com/egressfleet/egressfleet/internal/config"
	"github.com/egressfleet/egressfleet/internal/telemetry"
)

// issue writes a certificate for 127.0.0.1 and its key, and returns who trusts it.
func issue(t *testing.T, files config.TLS) *x509.CertPool {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(t, err)
	template := &x509.Certificate{
		SerialNumber: big.NewInt(time.Now().UnixNano()), NotAfter: time.Now().Add(time.Hour),
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, IsCA: true, BasicConstraintsValid: true,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	require.NoError(t, err)
	raw, err := x509.MarshalPKCS8PrivateKey(key)
	require.NoError(t, err)
	chain := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
	require.NoError(t, os.WriteFile(files.Certificate, chain, 0o600))
	require.NoError(t, os.WriteFile(files.Key, pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: raw}), 0o600))
	roots := x509.NewCertPool()
	require.True(t, roots.AppendCertsFromPEM(chain))
	return roots
}

func pair(t *testing.T) config.TLS {
	dir := t.TempDir()
	return config.TLS{Certificate: filepath.Join(dir, "tls.crt"), Key: filepath.Join(dir, "tls.key")}
}

func TestACertificateIsFollowedAndABadOneChangesNothing(t *testing.T) {
	t.Parallel()
	files := pair(t)
	issue(t, files)
	var log bytes.Buffer
	c, err := openCertificate(files, slog.New(slog.NewTextHandler(&log, nil)))
	require.NoError(t, err)
	first := c.now()
	aSecondLater := func() *tls.Certificate { c.looked = time.Time{}; return c.now() }
	require.Same(t, first, aSecondLater(), "nothing has changed")

	issue(t, config.TLS{Certificate: files.Certificate, Key: filepath.Join(t.TempDir(), "elsewhere")})
	require.Same(t, first, aSecondLater(), "the key is another's: a rotation is half done")
	require.Contains(t, log.String(), files.Key)
	require.NotContains(t, log.String(), "PRIVATE")
	issue(t, files)
	require.NotSame(t, first, aSecondLater())
	second := c.now()
	require.NoError(t, os.Remove(files.Key))
	require.Same(t, second, aSecondLater())
}

func TestACertificateThatIsNoneIsNamed(t *testing.T) {
	t.Parallel()
	files := pair(t)
	_, err := openCertificate(files, slog.Default())
	require.ErrorContains(t, err, "api.tls.certificate: open "+files.Certificate)
	issue(t, files)
	require.NoError(t, os.WriteFile(files.Key, []byte("s3cret"), 0o600))
	_, err = openCertificate(files, slog.Default())
	require.ErrorContains(t, err, "api.tls: "+files.Certificate+" with "+files.Key)
	require.NotContains(t, err.Error(), "s3cret")
}

func TestTheAPIIsServedByTLSToThoseWithAToken(t *testing.T) {
	t.Parallel()
	files := pair(t)
	roots := issue(t, files)
	tokens := filepath.Join(t.TempDir(), "tokens.yaml")
	// The SHA-256 of "token".
	require.NoError(t, os.WriteFile(tokens, []byte("tokens:\n- {name: a, scopes: [read], sha256: "+
		"3c469e9d6c5875d37a43f353d4f88e61fcf812c66eee3457465a40b0da4153e0}\n"), 0o600))
	p := &process{
		log: slog.New(slog.DiscardHandler), cfg: config.Config{API: config.API{
			Listen: config.Listen{Host: "127.0.0.1"}, TokensFile: tokens, TLS: files,
		}},
		failed: make(chan error, 1), registry: telemetry.NewRegistry(),
	}
	require.NoError(t, p.listenAPI(t.Context()))
	require.NoError(t, p.serveAPI(t.Context()))
	defer func() { require.NoError(t, p.stop()) }()
	client := &http.Client{Transport: &http.Transport{
		TLSClientConfig: &tls.Config{RootCAs: roots}, ForceAttemptHTTP2: true,
	}}
	defer client.CloseIdleConnections()
	ask := func(path, token string) *http.Response {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "https://"+p.addresses.API+path, nil)
		require.NoError(t, err)
		if token != "" {
			r.Header.Set("Authorization", "Bearer "+token)
		}
		answer, err := client.Do(r)
		require.NoError(t, err)
		require.NoError(t, answer.Body.Close())
		return answer
	}
	require.Equal(t, 2, ask("/healthz", "").ProtoMajor)
	require.Equal(t, http.StatusOK, ask("/healthz", "").StatusCode)
	require.Equal(t, http.StatusUnauthorized, ask("/v1/providers", "").StatusCode)
	require.Equal(t, http.StatusNotFound, ask("/v1/providers", "token").StatusCode, "let in; there is no providers file")
}

func TestAPIFilesThatAreNotThereAreRefused(t *testing.T) {
	t.Parallel()
	for _, api := range []config.API{
		{TokensFile: "nowhere"}, {TLS: config.TLS{Certificate: "nowhere", Key: "nowhere"}},
	} {
		p := &process{log: slog.New(slog.DiscardHandler), cfg: config.Config{API: api}}
		require.Error(t, p.guard(new(server.Options)))
	}
}
