package local_test

import (
	"bufio"
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/egressfleet/egressfleet/providers"
	"github.com/egressfleet/egressfleet/providers/local"
)

// target is a server on the loopback that answers with the address it sees.
type target struct {
	*httptest.Server
	requests chan *http.Request
}

func newTarget(t *testing.T) *target {
	t.Helper()
	return start(t, httptest.NewUnstartedServer(nil), (*httptest.Server).Start)
}

func newTLSTarget(t *testing.T) *target {
	t.Helper()
	return start(t, httptest.NewUnstartedServer(nil), (*httptest.Server).StartTLS)
}

func start(t *testing.T, server *httptest.Server, start func(*httptest.Server)) *target {
	t.Helper()
	tgt := &target{Server: server, requests: make(chan *http.Request, 10)}
	server.Config.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		tgt.requests <- r
		w.Header().Set("Connection", "X-Hop")
		w.Header().Set("X-Hop", "for the proxy only")
		w.Header().Set("X-End", "for the client")
		host, _, _ := net.SplitHostPort(r.RemoteAddr)
		_, _ = io.WriteString(w, host)
	})
	start(server)
	t.Cleanup(server.Close)
	return tgt
}

// seenBy returns the address that the target sees when a client calls it.
func (tgt *target) seenBy(t *testing.T, client *http.Client) string {
	t.Helper()
	code, body := get(t, client, tgt.URL)
	require.Equal(t, http.StatusOK, code, body)
	return body
}

func get(t *testing.T, client *http.Client, at string) (code int, body string) {
	t.Helper()
	res, err := client.Get(at)
	require.NoError(t, err)
	defer func() { _ = res.Body.Close() }()
	data, err := io.ReadAll(res.Body)
	require.NoError(t, err)
	return res.StatusCode, string(data)
}

func TestTargetsSeeTheAddressOfTheInstance(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	one, two := l.running("one"), l.running("two")
	plain, secure := newTarget(t), newTLSTarget(t)
	trust := func(tr *http.Transport) {
		roots := x509.NewCertPool()
		roots.AddCert(secure.Certificate())
		tr.TLSClientConfig = &tls.Config{RootCAs: roots, MinVersion: tls.VersionTLS12}
	}
	for _, i := range []providers.Instance{one, two} {
		require.Equal(t, i.EgressIP, plain.seenBy(t, through(t, i)), "plain HTTP")
		require.Equal(t, i.EgressIP, secure.seenBy(t, through(t, i, trust)), "TLS through CONNECT")
		named := strings.Replace(plain.URL, "127.0.0.1", "localhost", 1)
		code, body := get(t, through(t, i), named)
		require.Equal(t, http.StatusOK, code)
		require.Equal(t, i.EgressIP, body, "a name that resolves to the loopback")
	}
}

func TestHeadersForTheProxyStayThere(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	tgt := newTarget(t)
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, tgt.URL, http.NoBody)
	require.NoError(t, err)
	for name, value := range map[string]string{
		"Proxy-Authorization": "Basic c2VjcmV0", "Proxy-Connection": "keep-alive", "Keep-Alive": "timeout=5",
		"Connection": "X-Mine", "X-Mine": "hop", "Te": "trailers", "Upgrade": "websocket", "X-Kept": "end",
	} {
		req.Header.Set(name, value)
	}
	req.Header["User-Agent"] = nil // none at all
	res, err := through(t, l.running("u")).Do(req)
	require.NoError(t, err)
	require.NoError(t, res.Body.Close())

	got := (<-tgt.requests).Header
	for _, name := range []string{
		"Proxy-Authorization", "Proxy-Connection", "Keep-Alive", "Connection", "X-Mine", "Te", "Upgrade", "User-Agent",
		"X-Forwarded-For", "Forwarded", "Via",
	} {
		require.NotContains(t, got, name)
	}
	require.Equal(t, "end", got.Get("X-Kept"))
	require.NotContains(t, res.Header, "X-Hop")
	require.Equal(t, "for the client", res.Header.Get("X-End"))
}

// talk sends raw text to an instance and returns its answer.
func talk(t *testing.T, i providers.Instance, text string) *http.Response {
	t.Helper()
	c, err := net.Dial("tcp", net.JoinHostPort(i.IP, "3128"))
	require.NoError(t, err)
	t.Cleanup(func() { _ = c.Close() })
	require.NoError(t, c.SetDeadline(time.Now().Add(soon)))
	_, err = io.WriteString(c, text)
	require.NoError(t, err)
	res, err := http.ReadResponse(bufio.NewReader(c), &http.Request{Method: http.MethodGet})
	require.NoError(t, err)
	t.Cleanup(func() { _ = res.Body.Close() })
	return res
}

func TestWhatCannotBeDoneIsExplained(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	i := l.running("u")
	closed, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	nobody := closed.Addr().String()
	require.NoError(t, closed.Close())
	for name, c := range map[string]struct {
		text string
		code int
		says string
	}{
		"CONNECT to a closed port": {
			fmt.Sprintf("CONNECT %s HTTP/1.1\r\nHost: %[1]s\r\n\r\n", nobody), http.StatusBadGateway, "connection refused",
		},
		"CONNECT to a port that is none": {
			"CONNECT 127.0.0.1:99999 HTTP/1.1\r\nHost: x\r\n\r\n", http.StatusBadGateway, "invalid port",
		},
		"GET of a closed port": {
			fmt.Sprintf("GET http://%s/ HTTP/1.1\r\nHost: %[1]s\r\n\r\n", nobody), http.StatusBadGateway, "connection refused",
		},
		"a request to the proxy itself": {
			"GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n", http.StatusBadRequest, "forward proxy",
		},
		"a URL that the proxy would have to decrypt": {
			"GET https://example.invalid/ HTTP/1.1\r\nHost: example.invalid\r\n\r\n", http.StatusBadRequest, "CONNECT",
		},
		"no HTTP": {"hello\r\n\r\n", http.StatusBadRequest, "Bad Request"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			res := talk(t, i, c.text)
			require.Equal(t, c.code, res.StatusCode)
			body, err := io.ReadAll(res.Body)
			require.NoError(t, err)
			require.Contains(t, string(body), c.says)
		})
	}
}

func TestARequestOfTheProxyToItselfEnds(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	i := l.running("u")
	code, body := get(t, through(t, i), "http://"+net.JoinHostPort(i.IP, "3128")+"/")
	require.Equal(t, http.StatusBadRequest, code)
	require.Contains(t, body, "forward proxy")
}

func TestDeleteLetsARequestFinish(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	i := l.running("u")
	asked, answer := make(chan struct{}), make(chan struct{})
	slow := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		close(asked)
		<-answer
		_, _ = io.WriteString(w, "done")
	}))
	t.Cleanup(slow.Close)
	client := through(t, i)
	body := make(chan string, 1)
	go func() {
		res, err := client.Get(slow.URL)
		if err != nil {
			body <- err.Error()
			return
		}
		defer func() { _ = res.Body.Close() }()
		data, _ := io.ReadAll(res.Body)
		body <- string(data)
	}()
	<-asked
	deleted := make(chan error, 1)
	go func() { deleted <- l.Delete(t.Context(), i.ID) }()
	require.Eventually(t, func() bool { // it takes no more, so it was told to end
		c, err := net.Dial("tcp", net.JoinHostPort(i.IP, "3128"))
		if err == nil {
			_ = c.Close()
		}
		return err != nil
	}, soon, time.Millisecond)
	close(answer)
	require.Equal(t, "done", <-body)
	require.NoError(t, <-deleted)
}

func TestDeleteDoesNotWaitForATunnel(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	i := l.running("u")
	echo := newTarget(t)
	at, err := url.Parse(echo.URL)
	require.NoError(t, err)
	res := talk(t, i, fmt.Sprintf("CONNECT %s HTTP/1.1\r\nHost: %[1]s\r\n\r\n", at.Host))
	require.Equal(t, http.StatusOK, res.StatusCode)
	local.Hurry(l.Provider, soon, time.Hour) // it must end by itself
	ctx, cancel := context.WithTimeout(t.Context(), soon)
	defer cancel()
	require.NoError(t, l.Delete(ctx, i.ID))
	require.Empty(t, l.processes())
}
