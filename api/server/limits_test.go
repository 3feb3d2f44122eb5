package server_test

import (
	"errors"
	"io"
	"net"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/egressfleet/egressfleet/api/server"
)

func TestASilentFleetIsAnsweredForInTime(t *testing.T) {
	t.Parallel()
	for name, r := range map[string]struct{ method, target, body, kind string }{
		"put":       {"PUT", proxyA, minimal, "unavailable"},
		"get":       {"GET", proxyA, "", "unavailable"},
		"delete":    {"DELETE", proxyA, "", "unavailable"},
		"list":      {"GET", "/v1/namespaces/default/proxies", "", "unavailable"},
		"leave":     {"DELETE", proxyA + "?skipCleanup=true&reason=x", "", "unavailable"},
		"replace":   {"POST", proxyA + "/replace", "", "unavailable"},
		"retry":     {"POST", proxyA + "/retry", "", "unavailable"},
		"hold":      {"POST", proxyA + "/hold", "", "unavailable"},
		"resume":    {"POST", proxyA + "/resume", "", "unavailable"},
		"timeline":  {"GET", proxyA + "/timeline", "", "unavailable"},
		"readiness": {"GET", "/readyz", "", "not-ready"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newStage(pool()...)
			s.server = server.New(s.fleet, server.Options{Limits: server.Limits{Handler: 20 * time.Millisecond}})
			s.server.Refresh(t.Context())
			s.fleet.hang = true
			if name != "readiness" {
				s.fleet.late = errors.New("rpc error: code = DeadlineExceeded") // which is no context.DeadlineExceeded
			}
			began := time.Now()
			answer := s.ask(t, r.method, r.target, r.body)
			require.Less(t, time.Since(began), 2*time.Second)
			require.Equal(t, "5", answer.Header().Get("Retry-After"))
			require.Equal(t, refusal{503, r.kind, "", ""}, told(t, answer))
			require.Equal(t, 200, s.ask(t, "GET", "/v1/discovery", "").Code, "discovery does not need the fleet")
		})
	}
}

func TestEveryCallToTheFleetIsBounded(t *testing.T) {
	t.Parallel()
	s := newStage(pool()...)
	within := func(limit time.Duration) {
		t.Helper()
		require.Greater(t, s.fleet.limit, limit-time.Second)
		require.LessOrEqual(t, s.fleet.limit, limit)
	}
	s.server.Refresh(t.Context())
	within(30 * time.Second) // the first list of all
	s.server.Refresh(t.Context())
	within(4 * time.Second)
	s.ask(t, "GET", "/readyz", "")
	within(3 * time.Second)
	for _, method := range []string{"GET", "PUT", "DELETE"} {
		s.ask(t, method, proxyA, minimal)
		within(10 * time.Second)
	}
}

func TestASlowBodyIsEndedByTheServer(t *testing.T) {
	t.Parallel()
	l := run(t, newStage(), server.Limits{Read: 50 * time.Millisecond})
	answer, conn := l.raw(t, "PUT "+proxyA+" HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"+
		"Content-Length: 100\r\n\r\n{\"spec\"")
	require.Equal(t, 408, answer.StatusCode)
	require.True(t, answer.Close)
	_, err := io.Copy(io.Discard, conn)
	require.NoError(t, err, "the connection ends")
}

func TestWhatIsLeftOfALargeBodyIsNotWaitedFor(t *testing.T) {
	t.Parallel()
	l := run(t, newStage(), server.Limits{Read: 10 * patience})
	head := "PUT " + proxyA + " HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
	for _, body := range []string{
		"Transfer-Encoding: chunked\r\n\r\n110000\r\n" + strings.Repeat(" ", 0x110000),
		"Content-Length: 99999999\r\n\r\n" + strings.Repeat(" ", 1<<20+1),
	} {
		answer, _ := l.raw(t, head+body)
		require.Equal(t, 413, answer.StatusCode)
		require.True(t, answer.Close)
	}
}

func TestSlowHeadersAreEndedByTheServer(t *testing.T) {
	t.Parallel()
	l := run(t, newStage(), server.Limits{ReadHeader: 50 * time.Millisecond})
	conn, err := (&net.Dialer{}).DialContext(t.Context(), "tcp", l.address)
	require.NoError(t, err)
	defer conn.Close()
	require.NoError(t, conn.SetDeadline(time.Now().Add(patience)))
	_, err = io.WriteString(conn, "GET /healthz HT")
	require.NoError(t, err)
	_, err = io.Copy(io.Discard, conn)
	require.NoError(t, err, "the connection ends")
}

func TestWhatNetHTTPRefusesNeverReachesAHandler(t *testing.T) {
	t.Parallel()
	l := run(t, newStage(), server.Limits{})
	const get, put = "GET /healthz HTTP/1.1\r\nHost: localhost\r\n", "PUT " + proxyA + " HTTP/1.1\r\nHost: localhost\r\n"
	for name, r := range map[string]struct {
		sent   string
		status int
	}{
		"a huge header":           {get + "X: " + strings.Repeat("x", 32<<10) + "\r\n\r\n", 431},
		"a huge path":             {"GET /" + strings.Repeat("x", 32<<10) + " HTTP/1.1\r\nHost: localhost\r\n\r\n", 431},
		"a path badly encoded":    {"GET /v1/%zz HTTP/1.1\r\nHost: localhost\r\n\r\n", 400},
		"no host":                 {"GET /healthz HTTP/1.1\r\n\r\n", 400},
		"two lengths":             {put + "Content-Length: 1\r\nContent-Length: 2\r\n\r\n{}", 400},
		"a length below 0":        {put + "Content-Length: -1\r\n\r\n{}", 400},
		"an unknown encoding":     {put + "Transfer-Encoding: gzip\r\n\r\n{}", 501},
		"a header with a newline": {get + "A b: c\r\n\r\n", 400},
	} {
		answer, _ := l.raw(t, r.sent)
		require.Equal(t, r.status, answer.StatusCode, name)
	}
}

func TestWhatReachesAHandlerFromAnOddConnection(t *testing.T) {
	t.Parallel()
	l := run(t, newStage(), server.Limits{})
	const untyped = "PUT " + proxyA + " HTTP/1.1\r\nHost: localhost\r\n"
	const chunked = untyped + "Content-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n"
	for name, r := range map[string]struct {
		sent   string
		status int
	}{
		"a client that wants a forward proxy":  {"CONNECT example.com:443 HTTP/1.1\r\nHost: example.com:443\r\n\r\n", 404},
		"a whole URL for a path":               {"GET http://example.com/x HTTP/1.1\r\nHost: example.com\r\n\r\n", 404},
		"a whole URL for the page":             {"GET http://example.com/ HTTP/1.1\r\nHost: example.com\r\n\r\n", 403},
		"a chunk that is no chunk":             {chunked + "zz\r\n", 400},
		"a wrong type is refused without body": {untyped + "Expect: 100-continue\r\nContent-Length: 9\r\n\r\n", 415},
		"a body that is sent in chunks":        {chunked + "2d\r\n" + minimal + "\r\n0\r\n\r\n", 201},
	} {
		answer, _ := l.raw(t, r.sent)
		require.Equal(t, r.status, answer.StatusCode, name)
	}
}

func TestManyClientsAtOnce(t *testing.T) {
	t.Parallel()
	s := newStage(pool()...)
	s.server.Refresh(t.Context())
	var clients sync.WaitGroup
	for i := range 16 {
		name := "/v1/namespaces/default/proxies/p" + string(rune('a'+i))
		clients.Go(func() {
			for range 25 {
				s.server.Refresh(t.Context())
				for _, r := range []struct {
					method, target, body string
					statuses             []int
				}{
					{"PUT", name, `{"spec": {"provider": "local", "port": 1}}`, []int{200, 201}},
					{"GET", name, "", []int{200}},
					{"GET", "/v1/namespaces/default/proxies", "", []int{200}},
					{"GET", "/v1/discovery", "", []int{200}},
					{"GET", "/v1/discovery?format=txt", "", []int{200}},
					{"DELETE", name, "", []int{202}},
					{"GET", "/readyz", "", []int{200}},
				} {
					if code := s.ask(t, r.method, r.target, r.body).Code; !slices.Contains(r.statuses, code) {
						t.Errorf("%s %s: %d", r.method, r.target, code)
					}
				}
			}
		})
	}
	clients.Wait()
}
