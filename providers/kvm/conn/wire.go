package conn

import (
	"errors"
	"fmt"
	"io"
	"net"
	"sync/atomic"
	"time"
)

// writeChunk is how much is written between two counts of progress.
const writeChunk = 32 << 10

// errLost marks what the wire failed with, so that it is told from the errors of a call.
var errLost = errors.New("the connection ended")

// wire is the net.Conn that libvirt's client is given: a bridge, read by packets.
type wire struct {
	bridge  io.ReadWriteCloser
	frames  *frames
	packets atomic.Int64 // that came
	written atomic.Int64 // bytes
	ready   chan struct{}
	over    func(error) // is called once or more when it can be used no longer
}

var _ net.Conn = (*wire)(nil)

func newWire(bridge io.ReadWriteCloser, over func(error)) *wire {
	w := &wire{bridge: bridge, over: over, ready: make(chan struct{})}
	w.frames = newFrames(bridge, func() { w.packets.Add(1) })
	return w
}

// Read tells of its end before libvirt's client learns of it. The client forgets to hear of an
// end that comes between the answer to its opening and its own last step, so that waits.
func (w *wire) Read(p []byte) (int, error) {
	n, err := w.frames.Read(p)
	if err != nil {
		w.over(fmt.Errorf("the stream to libvirt ended: %w", err))
		if w.frames.opened {
			<-w.ready
		}
	}
	return n, err
}

func (w *wire) Write(p []byte) (done int, err error) {
	for done < len(p) && err == nil {
		var n int
		n, err = w.bridge.Write(p[done:min(len(p), done+writeChunk)])
		done += n
		w.written.Add(int64(n))
	}
	if err != nil { // the reader learns why
		err = fmt.Errorf("%w: %w", errLost, err)
	}
	return done, err
}

// Close is called by libvirt's client when it has said goodbye, or gives up its opening. Then
// the reader may know a better cause.
func (w *wire) Close() error {
	select {
	case <-w.ready:
		w.over(net.ErrClosed)
		return nil
	default:
		return w.bridge.Close()
	}
}

// The rest is of no use here: a connection that is stuck is closed from below.

func (w *wire) LocalAddr() net.Addr              { return &net.UnixAddr{Net: "unix"} }
func (w *wire) RemoteAddr() net.Addr             { return &net.UnixAddr{Net: "unix"} }
func (w *wire) SetDeadline(time.Time) error      { return nil }
func (w *wire) SetReadDeadline(time.Time) error  { return nil }
func (w *wire) SetWriteDeadline(time.Time) error { return nil }

// counted is the TCP connection, with a count of what came.
type counted struct {
	net.Conn
	read atomic.Int64
}

func (c *counted) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	c.read.Add(int64(n))
	return n, err
}

// Dial gives libvirt's client the wire, once.
func (w *wire) Dial() (net.Conn, error) { return w, nil }
