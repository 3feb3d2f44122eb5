package load

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestAHeadTellsTheStatusAndTheLength(t *testing.T) {
	t.Parallel()
	status, length, err := read([]byte("HTTP/1.1 200 OK\r\nServer: x\r\ncontent-Length:  42\r\nETag: y"))
	require.NoError(t, err)
	require.Equal(t, []int{200, 42}, []int{status, length})
	status, length, err = read([]byte("HTTP/1.1 304 Not Modified\r\nETag: y"))
	require.NoError(t, err)
	require.Equal(t, []int{304, 0}, []int{status, length})
	for _, bad := range []string{"", "HTTP", "HTTP/1.1 abc", "HTTP/1.1 200 OK\r\nContent-Length: many"} {
		_, _, err := read([]byte(bad))
		require.Error(t, err, bad)
	}
}

func TestEveryAnswerIsCounted(t *testing.T) {
	t.Parallel()
	var asked atomic.Int64
	body := strings.Repeat("x", 3*buffer)
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked.Add(1)
		w.Header().Set("Content-Length", "786432")
		w.WriteHeader(map[bool]int{true: 200, false: 500}[r.Header.Get("X-Right") == "yes"])
		_, _ = w.Write([]byte(body))
	}))
	t.Cleanup(s.Close)
	l := Load{
		Address: s.Listener.Addr().String(), Path: "/", Header: "X-Right: yes\r\n", Want: 200, Connections: 3,
		For: 100 * time.Millisecond,
	}
	o, err := l.Run(t.Context())
	require.NoError(t, err)
	require.Len(t, o.Times, int(asked.Load()))
	require.GreaterOrEqual(t, o.Took, l.For.Seconds())
	l.Header = ""
	_, err = l.Run(t.Context())
	require.ErrorContains(t, err, "it answered 500, and not 200")
}
