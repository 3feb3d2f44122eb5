package e2e

import (
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/egressfleet/egressfleet/activities/probe"
	v1 "github.com/egressfleet/egressfleet/api/v1"
	"github.com/egressfleet/egressfleet/internal/echo"
)

// site is a target on loopback that says whom it sees.
func site(t *testing.T, secure bool) *httptest.Server {
	t.Helper()
	h := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = fmt.Fprintf(w, "hello %s", r.RemoteAddr)
	})
	s := httptest.NewUnstartedServer(h)
	if secure {
		s.StartTLS()
	} else {
		s.Start()
	}
	t.Cleanup(s.Close)
	return s
}

// fetch gets a page of the site through a proxy, TLS verified to the site.
func fetch(t *testing.T, proxy string, s *httptest.Server) string {
	t.Helper()
	roots := x509.NewCertPool()
	if cert := s.Certificate(); cert != nil {
		roots.AddCert(cert)
	}
	return get(t, proxy, s.URL, &tls.Config{RootCAs: roots, MinVersion: tls.VersionTLS12})
}

// probe tries a proxy as a health round does, from another process than the target's.
func (w *world) probe(p v1.Proxy) probe.Verdict {
	w.t.Helper()
	roots, err := echo.ReadRoots(w.certificate())
	require.NoError(w.t, err)
	target := probe.Target{Host: "127.0.0.1", Port: w.echo, Roots: roots}
	proxy := probe.Proxy{Address: net.JoinHostPort(p.Status.IP, strconv.Itoa(p.Spec.Port))}
	return new(probe.Prober).Probe(w.t.Context(), target, proxy)
}

// fetchURL gets a page without TLS through a proxy.
func fetchURL(t *testing.T, proxy, page string) string {
	t.Helper()
	return get(t, proxy, page, nil)
}

func get(t *testing.T, proxy, page string, secure *tls.Config) string {
	t.Helper()
	via, err := url.Parse(proxy)
	require.NoError(t, err)
	transport := &http.Transport{Proxy: http.ProxyURL(via), TLSClientConfig: secure}
	defer transport.CloseIdleConnections()
	client := &http.Client{Transport: transport, Timeout: 20 * time.Second}
	res, err := client.Get(page)
	require.NoError(t, err)
	defer func() { _ = res.Body.Close() }()
	body, err := io.ReadAll(res.Body)
	require.NoError(t, err)
	require.Equal(t, http.StatusOK, res.StatusCode, string(body))
	return string(body)
}
