package probe

import (
	"bufio"
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"time"
)

// attempt goes the whole way once, and says how far it came.
func (p *Prober) attempt(ctx context.Context, target Target, proxy Proxy) finding {
	if target.IsZero() {
		return finding{cause: CauseNoTarget, detail: "no target is configured"}
	}
	return p.timed(ctx, target, func(w *way) finding {
		a, f := w.open(proxy)
		if f.cause == CauseNone {
			f = w.secure(target)
		}
		if f.cause == CauseNone {
			f.detail = join(a.describe(proxy.Credentials.IsZero()), f.detail)
		}
		return f
	})
}

// direct goes to the target without a proxy.
func (p *Prober) direct(ctx context.Context, target Target) finding {
	return p.timed(ctx, target, func(w *way) finding {
		if f := w.connect(target.Address()); f.cause != CauseNone {
			return f
		}
		return w.secure(target)
	})
}

// timed bounds an attempt, and tells a fault of the other side from the end of our own
// time.
func (p *Prober) timed(ctx context.Context, target Target, try func(*way) finding) finding {
	if err := target.check(); err != nil {
		return finding{cause: CauseOurs, detail: err.Error()}
	}
	start := time.Now()
	within, cancel := context.WithTimeout(ctx, p.limits().Total)
	defer cancel()
	w := &way{prober: p, ctx: within, target: target}
	defer w.close()
	f := try(w)
	f.took = time.Since(start)
	if f.cause != CauseNone && ctx.Err() != nil {
		f.cause, f.detail = CauseOurs, "the round ended first ("+f.detail+")"
	}
	return f
}

// way is one connection, from its dial to its end.
type way struct {
	prober  *Prober
	ctx     context.Context //nolint:containedctx // lives for one attempt, whose steps it bounds
	target  Target
	conn    net.Conn
	closers []func() error
}

func (w *way) close() {
	for _, f := range w.closers {
		_ = f()
	}
}

// connect dials. The connection fails every read and write once the attempt ends.
func (w *way) connect(address string) finding {
	conn, err := w.prober.dial(w.ctx, address)
	if err != nil {
		return finding{cause: dialCause(err), detail: "TCP to " + clean(address) + ": " + describeError(err)}
	}
	w.conn = conn
	stop := context.AfterFunc(w.ctx, func() { _ = conn.SetDeadline(time.Unix(1, 0)) })
	w.closers = append(w.closers, func() error { stop(); return conn.Close() })
	return finding{}
}

// step gives the next reads and writes their own time within the attempt's.
func (w *way) step(limit time.Duration) {
	_ = w.conn.SetDeadline(time.Now().Add(limit))
	if w.ctx.Err() != nil { // its end came before our deadline replaced it
		_ = w.conn.SetDeadline(time.Unix(1, 0))
	}
}

// open asks the proxy for a tunnel. What follows the head of its answer is in it.
func (w *way) open(proxy Proxy) (answer, finding) {
	if f := w.connect(proxy.Address); f.cause != CauseNone {
		return answer{}, f
	}
	w.step(w.prober.limits().Answer)
	// A write may fail because the proxy has refused already: the answer says so.
	_, _ = io.WriteString(w.conn, request(w.target, proxy.Credentials))
	m := &meter{Conn: w.conn, limit: headLimit}
	r := bufio.NewReader(m)
	a, err := readAnswer(r)
	if err != nil {
		detail := "CONNECT " + w.target.Address() + ": " + describeError(err)
		return answer{}, finding{cause: readCause(err, m.got), detail: detail}
	}
	m.limit = 0
	w.conn = buffered{Conn: w.conn, r: r}
	return a, finding{cause: answerCause(a.status, a.header), detail: a.describe(proxy.Credentials.IsZero())}
}

// request asks for the target in the fewest words that every proxy takes.
func request(target Target, credentials Credentials) string {
	return fmt.Sprintf("CONNECT %[1]s HTTP/1.1\r\nHost: %[1]s\r\n%[2]s\r\n", target.Address(), credentials.header())
}

// secure verifies that the other end is the target, and asks it one thing.
func (w *way) secure(target Target) finding {
	w.step(w.prober.limits().Handshake)
	conn := tls.Client(w.conn, &tls.Config{
		ServerName: target.Host, RootCAs: target.Roots, MinVersion: tls.VersionTLS12, NextProtos: []string{"http/1.1"},
	})
	if err := conn.HandshakeContext(w.ctx); err != nil {
		return finding{cause: tlsCause(err), detail: "TLS to " + target.Address() + ": " + describeTLS(err)}
	}
	w.step(w.prober.limits().Request)
	egress, said := ask(conn, target)
	return finding{detail: join("TLS verified to "+target.Address(), said), egress: egress}
}
