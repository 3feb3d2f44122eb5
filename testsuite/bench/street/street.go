// Package street is many forward proxies of this machine, each on a port of loopback, and
// the target of all, for benches that probe. It imports the echo target and
// testsuite/bench/stage. Start reading at Open.
package street

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"net"
	"strings"

	"github.com/egressfleet/egressfleet/activities/probe"
	v1 "github.com/egressfleet/egressfleet/api/v1"
	"github.com/egressfleet/egressfleet/internal/echo"
	"github.com/egressfleet/egressfleet/testsuite/bench/stage"
)

// Street is many forward proxies, each on a port of its own, and the target of all. The
// caller closes it.
type Street struct {
	ctx     context.Context //nolint:containedctx // of its listeners, until Close
	Target  probe.Target
	Proxies []v1.Proxy // as their workflows show them: running, healthy; those that hang come first
	stop    context.CancelFunc
	ended   chan error
}

// Open opens so many proxies. Those that hang take a connection and never answer.
func Open(ctx context.Context, size, hanging int) (s *Street, err error) {
	s = &Street{Proxies: stage.Proxies(size), ended: make(chan error, 1)}
	s.ctx, s.stop = context.WithCancel(ctx)
	if s.Target, err = s.serveTarget(); err != nil {
		return nil, err
	}
	for i := range s.Proxies {
		talk := s.tunnel
		if i < hanging {
			talk = hang
		}
		port, err := s.open(talk)
		if err != nil {
			return nil, errors.Join(err, s.Close())
		}
		p := &s.Proxies[i]
		p.Spec.Port, p.Status.IP, p.Status.EgressIP = port, loopback, loopback
	}
	return s, nil
}

const loopback = "127.0.0.1"

// Close ends all of them.
func (s *Street) Close() error {
	s.stop()
	return <-s.ended
}

// serveTarget is what every proxy is asked for.
func (s *Street) serveTarget() (probe.Target, error) {
	target, err := echo.New()
	if err != nil {
		return probe.Target{}, err
	}
	l, port, err := s.listen()
	if err != nil {
		return probe.Target{}, err
	}
	go func() { s.ended <- target.Serve(s.ctx, l, slog.New(slog.DiscardHandler)) }()
	return probe.Target{Host: loopback, Port: port, Roots: target.Roots()}, nil
}

func (s *Street) listen() (net.Listener, int, error) {
	l, err := new(net.ListenConfig).Listen(s.ctx, "tcp", loopback+":0")
	if err != nil {
		return nil, 0, err
	}
	at, ok := l.Addr().(*net.TCPAddr)
	if !ok {
		return nil, 0, errors.Join(errors.New("a listener has no port"), l.Close())
	}
	return l, at.Port, nil
}

// open serves one proxy until the street is closed, and returns its port.
func (s *Street) open(talk func(net.Conn)) (int, error) {
	l, port, err := s.listen()
	if err != nil {
		return 0, err
	}
	context.AfterFunc(s.ctx, func() { _ = l.Close() })
	go func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			go func() {
				defer func() { _ = conn.Close() }()
				talk(conn)
			}()
		}
	}()
	return port, nil
}

// tunnel takes every CONNECT for one to the target, and carries bytes until one side ends.
func (s *Street) tunnel(conn net.Conn) {
	if !readHead(conn) {
		return
	}
	far, err := new(net.Dialer).DialContext(s.ctx, "tcp", s.Target.Address())
	if err != nil {
		return
	}
	defer func() { _ = far.Close() }()
	if _, err := io.WriteString(conn, "HTTP/1.1 200 Connection established\r\n\r\n"); err != nil {
		return
	}
	go func() {
		_, _ = io.Copy(far, conn)
		_ = far.Close()
	}()
	_, _ = io.Copy(conn, far)
}

// readHead reads the head of a request. Nothing follows it before it was answered.
func readHead(conn net.Conn) bool {
	var head strings.Builder
	buffer := make([]byte, 1<<10)
	for !strings.HasSuffix(head.String(), "\r\n\r\n") {
		n, err := conn.Read(buffer)
		if err != nil {
			return false
		}
		head.Write(buffer[:n])
	}
	return true
}

func hang(conn net.Conn) { _, _ = io.Copy(io.Discard, conn) }
