package server

import (
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// pair are both ends of a connection; ours gathers.
func pair(t *testing.T) (ours *gathers, theirs net.Conn) {
	t.Helper()
	listener, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer func() { _ = listener.Close() }()
	theirs, err = (&net.Dialer{}).DialContext(t.Context(), "tcp", listener.Addr().String())
	require.NoError(t, err)
	t.Cleanup(func() { _ = theirs.Close() })
	conn, err := gathering{listener}.Accept()
	require.NoError(t, err)
	t.Cleanup(func() { _ = conn.Close() })
	require.NoError(t, theirs.SetDeadline(time.Now().Add(20*time.Second)))
	return conn.(*gathers), theirs
}

// pieces is a response that sends what it is given in two, as net/http does.
type pieces struct {
	http.ResponseWriter
	to    io.Writer
	sizes []int
	sent  []int
	seen  func()
}

func (p *pieces) Write(body []byte) (n int, err error) {
	for _, size := range p.sizes {
		piece := body[n:min(n+size, len(body))]
		sent, err := p.to.Write(piece)
		p.sent, n = append(p.sent, sent), n+sent
		p.seen()
		if err != nil {
			return n, err
		}
	}
	return n, nil
}

func TestAHeadIsSentWithItsBody(t *testing.T) {
	t.Parallel()
	const long = 1 << 20
	for name, c := range map[string]struct {
		sizes []int
		held  []bool // after each piece
	}{
		"a head and a body":              {[]int{100, long}, []bool{true, false}},
		"as much as there is room for":   {[]int{headBytes, long}, []bool{true, false}},
		"a first piece that is too long": {[]int{headBytes + 1, 10}, []bool{false, true}},
		"more than two":                  {[]int{10, 10, 10, long}, []bool{true, false, false, false}},
		"a head alone":                   {[]int{100}, []bool{true}},
		"nothing":                        {nil, nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ours, theirs := pair(t)
			size := 0
			for _, n := range c.sizes {
				size += n
			}
			body := strings.Repeat("0123456789", size/10+1)[:size]
			var held []bool
			w := &pieces{to: ours, sizes: c.sizes, seen: func() { held = append(held, ours.head != nil) }}
			read := make(chan string, 1)
			go func() {
				got := make([]byte, size+1)
				n, _ := io.ReadFull(theirs, got)
				read <- string(got[:n])
			}()
			require.NoError(t, ours.write(w, []byte(body)))
			require.Equal(t, c.held, held)
			require.Equal(t, c.sizes, w.sent, "net/http counts what was sent")
			_, err := ours.Write([]byte("!"))
			require.NoError(t, err)
			require.Equal(t, body+"!", <-read, "afterwards nothing is held")
		})
	}
}

func TestAConnectionThatIsGoneIsAnError(t *testing.T) {
	t.Parallel()
	for name, sizes := range map[string][]int{"a head and a body": {10, 10}, "a head alone": {10}} {
		ours, _ := pair(t)
		require.NoError(t, ours.Close())
		w := &pieces{to: ours, sizes: sizes, seen: func() {}}
		require.ErrorIs(t, ours.write(w, make([]byte, 20)), net.ErrClosed, name)
		require.Nil(t, ours.head, name)
		require.False(t, ours.holding, name)
	}
}
