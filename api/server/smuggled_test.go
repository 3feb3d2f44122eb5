package server_test

import (
	"bufio"
	"io"
	"net"
	"net/http"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/egressfleet/egressfleet/api/server"
)

const (
	rawPut     = "PUT " + proxyA + " HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
	rawHold    = "POST " + proxyA + "/hold HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
	rawGet     = "GET " + proxyA + " HTTP/1.1\r\nHost: localhost\r\n"
	rawChunked = "Transfer-Encoding: chunked\r\n"
	// hidden is what a request in the body of another one would do.
	hidden = "DELETE " + proxyA + " HTTP/1.1\r\nHost: localhost\r\n\r\n"
)

// Two servers that read one connection differently would let a request through that only
// one of them has seen. What is not plain is refused, and ends the connection.
func TestARequestInsideOfAnotherOneIsNotServed(t *testing.T) {
	t.Parallel()
	for name, r := range map[string]struct {
		sent string
		want string // the statuses of all answers, until the server hangs up
	}{
		"two lengths": {
			rawPut + "Content-Length: 0\r\nContent-Length: 44\r\n\r\n" + hidden, "400",
		},
		"two lengths in one":      {rawPut + "Content-Length: 0, 44\r\n\r\n" + hidden, "400"},
		"a length with a sign":    {rawPut + "Content-Length: +5\r\n\r\n" + hidden, "400"},
		"a length in hexadecimal": {rawPut + "Content-Length: 0x5\r\n\r\n" + hidden, "400"},
		"a length of nothing":     {rawPut + "Content-Length: \r\n\r\n" + hidden, "400"},
		"a length beyond numbers": {rawPut + "Content-Length: 99999999999999999999\r\n\r\n" + hidden, "400"},
		"chunks twice": {
			rawPut + "Transfer-Encoding: chunked, chunked\r\n\r\n0\r\n\r\n" + hidden, "501",
		},
		"chunks in two lines": {
			rawPut + rawChunked + "Transfer-Encoding: x\r\n\r\n0\r\n\r\n" + hidden, "501",
		},
		"chunks that are identity": {rawPut + "Transfer-Encoding: identity\r\n\r\n" + hidden, "501"},
		"chunks with a tab": {
			rawPut + "Transfer-Encoding:\x0bchunked\r\n\r\n0\r\n\r\n" + hidden, "400",
		},
		"a space before the colon":  {rawPut + "Content-Length : 5\r\n\r\n" + hidden, "400"},
		"a name with a space":       {rawPut + "Content Length: 5\r\n\r\n" + hidden, "400"},
		"a name with a zero byte":   {rawPut + "X\x00: 5\r\n\r\n" + hidden, "400"},
		"a value with a zero byte":  {rawPut + "X: \x00\r\n\r\n" + hidden, "400"},
		"a value with a bare CR":    {rawPut + "X: a\rY: b\r\n\r\n" + hidden, "400"},
		"a line without a colon":    {rawPut + "Content-Length\r\n\r\n" + hidden, "400"},
		"a line of a colon":         {rawPut + ": 5\r\n\r\n" + hidden, "400"},
		"two hosts":                 {"GET /healthz HTTP/1.1\r\nHost: localhost\r\nHost: y\r\n\r\n" + hidden, "400"},
		"a host with a slash":       {"GET /healthz HTTP/1.1\r\nHost: x/y\r\n\r\n" + hidden, "400"},
		"a version of its own":      {"GET /healthz HTTP/3.7\r\nHost: localhost\r\n\r\n" + hidden, "505"},
		"no version":                {"GET /healthz\r\n\r\n" + hidden, "400"},
		"a path with a space":       {"GET /health z HTTP/1.1\r\nHost: localhost\r\n\r\n" + hidden, "400"},
		"a path with a zero byte":   {"GET /health\x00 HTTP/1.1\r\nHost: localhost\r\n\r\n" + hidden, "400"},
		"a method with a bracket":   {"G(T /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n" + hidden, "400"},
		"a chunk of a bad size":     {rawPut + rawChunked + "\r\n-1\r\n" + hidden, "400"},
		"a chunk of a huge size":    {rawPut + rawChunked + "\r\nfffffffffffffffff\r\n" + hidden, "400"},
		"a chunk that is too short": {rawPut + rawChunked + "\r\n1\r\nab\r\n0\r\n\r\n" + hidden, "400"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l := run(t, newStage(pool()...), server.Limits{})
			require.Equal(t, r.want, strings.Join(l.all(t, r.sent), " "))
			l.fleet.set(func(f *fakeFleet) { require.Empty(t, f.reasons, "the hidden one was served") })
		})
	}
}

// What is plain, though odd, is one request after the other, each with its own body.
func TestRequestsBehindEachOtherAreServedOneByOne(t *testing.T) {
	t.Parallel()
	end := rawGet + "Connection: close\r\n\r\n"
	for name, r := range map[string]struct{ sent, want string }{
		// net/http believes the chunks and drops the length (RFC 9112, 6.1); what stands before
		// the API has to do the same.
		"a length and chunks": {
			rawHold + "Content-Length: 9\r\n" + rawChunked + "\r\n2\r\n{}\r\n0\r\n\r\n" + end, "200 200",
		},
		"chunks and a length": {
			rawHold + rawChunked + "Content-Length: 2\r\n\r\n2\r\n{}\r\n0\r\n\r\n" + end, "200 200",
		},
		"two": {rawGet + "\r\n" + end, "200 200"},
		"a length twice, the same": {
			rawHold + "Content-Length: 2\r\nContent-Length: 2\r\n\r\n{}" + end, "200 200",
		},
		"a body that looks like one": {
			rawHold + "Content-Length: " + strconv.Itoa(len(hidden)) + "\r\n\r\n" + hidden + end, "400 200",
		},
		"a body of a GET": {rawGet + "Content-Length: 2\r\n\r\n{}" + end, "200 200"},
		"a method in another header": {
			rawGet + "X-HTTP-Method-Override: DELETE\r\n\r\n" + end, "200 200",
		},
		"a path in another header": {
			rawGet + "X-Original-URL: /v1/providers\r\n\r\n" + end, "200 200",
		},
		"a token for the next hop": {rawGet + "Connection: Authorization\r\n\r\n" + end, "200 200"},
		"a trailer that is a header": {
			rawHold + rawChunked + "\r\n2\r\n{}\r\n0\r\nIf-Match: x\r\n\r\n" + end, "200 200",
		},
		"an upgrade to HTTP/2": {
			rawGet + "Connection: Upgrade\r\nUpgrade: h2c\r\n\r\n" + end, "200 200",
		},
		"a beginning of HTTP/2": {"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", "404"},
		"lines that end without a return": {
			"GET " + proxyA + " HTTP/1.1\nHost: localhost\nConnection: close\n\n", "200",
		},
		"a header that goes on": {rawGet + "X: a\r\n b\r\n\r\n" + end, "200 200"},
		"an expectation that nobody knows": {
			rawHold + "Expect: miracles\r\nContent-Length: 2\r\n\r\n{}", "417",
		},
		"an asterisk": {
			"OPTIONS * HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n", "200",
		},
		"a body that ends before its time":  {rawPut + "Content-Length: 100\r\n\r\n{}", "400"},
		"chunks that end before their time": {rawPut + rawChunked + "\r\n5\r\n{}", "400"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l := run(t, newStage(pool()...), server.Limits{})
			require.Equal(t, r.want, strings.Join(l.all(t, r.sent), " "))
			l.fleet.set(func(f *fakeFleet) { require.Empty(t, f.reasons) })
		})
	}
}

// all sends bytes as they are, says that there is no more, and returns the status of every
// answer until the server hangs up.
func (l *live) all(t *testing.T, sent string) (statuses []string) {
	t.Helper()
	conn, err := (&net.Dialer{}).DialContext(t.Context(), "tcp", l.address)
	require.NoError(t, err)
	t.Cleanup(func() { _ = conn.Close() })
	require.NoError(t, conn.SetDeadline(time.Now().Add(patience)))
	_, err = io.WriteString(conn, sent)
	require.NoError(t, err)
	require.NoError(t, conn.(*net.TCPConn).CloseWrite())
	for answers := bufio.NewReader(conn); ; {
		answer, err := http.ReadResponse(answers, nil)
		if err != nil {
			return statuses
		}
		_, err = io.Copy(io.Discard, answer.Body)
		require.NoError(t, err)
		require.NoError(t, answer.Body.Close())
		statuses = append(statuses, answer.Status[:3])
	}
}
