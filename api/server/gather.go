package server

import (
	"context"
	"net"
	"net/http"
	"sync"
)

// gathers is a connection that can send the head of an answer and its body at once.
// net/http sends a large body in two: what fits into its buffer beside the head, and the
// rest. The client is then woken for each, and the first is too small to be worth it.
type gathers struct {
	*net.TCPConn
	holding bool
	head    *[]byte // what was to be sent first, and is not yet
}

// heads are buffers for what is held, of the size that net/http writes.
var heads = sync.Pool{New: func() any { b := make([]byte, 0, headBytes); return &b }}

const headBytes = 4 << 10

// Write sends p behind what is held. While the connection holds, a first p that is small
// is kept back.
func (g *gathers) Write(p []byte) (int, error) {
	switch {
	case g.head != nil:
		return g.both(p)
	case g.holding && len(p) <= headBytes:
		g.head, g.holding = heads.Get().(*[]byte), false //nolint:forcetypeassert // of heads
		*g.head = append((*g.head)[:0], p...)
		return len(p), nil
	default:
		return g.TCPConn.Write(p)
	}
}

// both sends what is held and p. It returns how much of p was sent.
func (g *gathers) both(p []byte) (int, error) {
	head := *g.head
	pieces := net.Buffers{head, p}
	sent, err := pieces.WriteTo(g.TCPConn)
	heads.Put(g.head)
	g.head = nil
	return max(0, int(sent)-len(head)), err
}

// write is what answers with a body that is there as a whole. A nil connection is one that
// cannot gather, such as one of TLS.
func (g *gathers) write(w http.ResponseWriter, body []byte) error {
	if g == nil {
		_, err := w.Write(body)
		return err
	}
	g.holding = true
	_, err := w.Write(body)
	g.holding = false
	if g.head != nil { // there was nothing to send it with
		if _, late := g.both(nil); err == nil {
			err = late
		}
	}
	return err
}

// gathering is a listener whose connections gather.
type gathering struct{ net.Listener }

func (l gathering) Accept() (net.Conn, error) {
	conn, err := l.Listener.Accept()
	if tcp, plain := conn.(*net.TCPConn); plain && err == nil {
		return &gathers{TCPConn: tcp}, nil
	}
	return conn, err
}

type gathersKey struct{}

// withGathers lets the handlers of a connection find it.
func withGathers(ctx context.Context, conn net.Conn) context.Context {
	if g, ok := conn.(*gathers); ok {
		return context.WithValue(ctx, gathersKey{}, g)
	}
	return ctx
}

// gathersOf returns the connection of a request, or nil where it cannot gather.
func gathersOf(ctx context.Context) *gathers {
	g, _ := ctx.Value(gathersKey{}).(*gathers)
	return g
}
