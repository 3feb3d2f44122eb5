package local

import (
	"context"
	"net"
	"net/netip"
	"sync"
	"sync/atomic"
	"time"
)

// gate is a listener that lets only clients of this machine in. The others are
// closed before they can say a word.
type gate struct {
	net.Listener
	idle time.Duration // a client that takes no bytes for so long is closed
}

func (g gate) Accept() (net.Conn, error) {
	for {
		c, err := g.Listener.Accept()
		if err != nil {
			return nil, err
		}
		if fromLoopback(c.RemoteAddr()) {
			return &conn{Conn: c, idle: g.idle}, nil
		}
		_ = c.Close()
	}
}

// fromLoopback is the accept rule.
func fromLoopback(a net.Addr) bool {
	at, err := netip.ParseAddrPort(a.String())
	return err == nil && at.Addr().IsLoopback()
}

// conn is a connection that tells its watch of every byte. It is a net.Conn and
// not a *net.TCPConn, so that copying cannot go around Read and Write.
type conn struct {
	net.Conn
	idle  time.Duration
	watch atomic.Pointer[watch]
}

func (c *conn) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	c.watch.Load().saw(n)
	return n, err
}

func (c *conn) Write(p []byte) (int, error) {
	_ = c.SetWriteDeadline(time.Now().Add(c.idle)) // a reader that stopped reading
	n, err := c.Conn.Write(p)
	c.watch.Load().saw(n)
	return n, err
}

func (c *conn) Close() error {
	c.watch.Load().end()
	return c.Conn.Close()
}

// CloseRead and CloseWrite are what goproxy asks of both ends of a tunnel before it
// passes a half-close on.
func (c *conn) CloseRead() error { return c.half((*net.TCPConn).CloseRead) }

// CloseWrite sends the end of the stream.
func (c *conn) CloseWrite() error { return c.half((*net.TCPConn).CloseWrite) }

func (c *conn) half(shut func(*net.TCPConn) error) error {
	if tcp, ok := c.Conn.(*net.TCPConn); ok {
		return shut(tcp)
	}
	return c.Conn.Close()
}

type clientKey struct{}

// withClient lets the dialer of a CONNECT find the client's end of the tunnel.
func withClient(ctx context.Context, c net.Conn) context.Context {
	return context.WithValue(ctx, clientKey{}, c)
}

func clientOf(ctx context.Context) *conn {
	c, _ := ctx.Value(clientKey{}).(*conn)
	return c
}

// watch closes connections over which nothing has gone in either direction for the
// idle time. A nil watch does nothing.
type watch struct {
	idle  time.Duration
	timer *time.Timer
	once  sync.Once
	ended func()
}

func newWatch(idle time.Duration, ended func(), conns ...*conn) {
	w := &watch{idle: idle, ended: ended}
	w.timer = time.AfterFunc(idle, func() {
		for _, c := range conns {
			_ = c.Close()
		}
	})
	for _, c := range conns {
		c.watch.Store(w)
	}
}

func (w *watch) saw(n int) {
	if w != nil && n > 0 {
		w.timer.Reset(w.idle)
	}
}

func (w *watch) end() {
	if w != nil {
		w.timer.Stop()
		w.once.Do(w.ended)
	}
}

// tunnels counts the open ones, so that the end of the process can wait for them.
type tunnels struct{ open sync.WaitGroup }

// join ties the two ends of a tunnel to one watch.
func (t *tunnels) join(client, target *conn) {
	t.open.Add(1)
	if client == nil {
		newWatch(target.idle, t.open.Done, target)
		return
	}
	newWatch(target.idle, t.open.Done, client, target)
}

func (t *tunnels) wait(ctx context.Context) {
	done := make(chan struct{})
	go func() {
		t.open.Wait()
		close(done)
	}()
	select {
	case <-done:
	case <-ctx.Done():
	}
}
