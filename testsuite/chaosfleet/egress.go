package main

import (
	"context"
	"fmt"
	"io"
	"log"
	"log/slog"
	"net"
	"net/http"
	"strconv"
	"sync"
	"time"

	"github.com/elazarl/goproxy"

	"github.com/egressfleet/egressfleet/activities/probe"
	"github.com/egressfleet/egressfleet/internal/echo"
)

const (
	loopback = "127.0.0.1"
	// guard is an address of loopback that no instance gets. Who listens there has the
	// port to himself on all others, also while nothing of his is open.
	guard = "127.255.255.254"
	// Ports are taken from here on, below those that a system gives to connections: an
	// instance needs the same one on every address.
	firstPort, lastPort = 21280, 21380
	headerTimeout       = time.Minute
)

// egress is one forward proxy at many addresses of loopback: each instance is one of
// them, open while the instance lives. On Linux every address of 127/8 can be listened
// to; elsewhere each needs an alias of the interface.
type egress struct {
	Port   int
	guard  net.Listener
	server *http.Server

	mu      sync.Mutex
	listens map[string]net.Listener
	refuses map[string]bool // the addresses that deny every request
}

func newEgress(ctx context.Context) (*egress, error) {
	e := &egress{listens: map[string]net.Listener{}, refuses: map[string]bool{}}
	p := goproxy.NewProxyHttpServer()
	p.Logger = log.New(io.Discard, "", 0)
	p.OnRequest().HandleConnectFunc(e.connect)
	e.server = &http.Server{Handler: p, ReadHeaderTimeout: headerTimeout, ErrorLog: log.New(io.Discard, "", 0)}
	var err error
	e.guard, e.Port, err = reserve(ctx)
	return e, err
}

// connect denies what comes to an address that refuses.
func (e *egress) connect(host string, ctx *goproxy.ProxyCtx) (*goproxy.ConnectAction, string) {
	local, _ := ctx.Req.Context().Value(http.LocalAddrContextKey).(*net.TCPAddr)
	e.mu.Lock()
	defer e.mu.Unlock()
	if local == nil || e.refuses[local.IP.String()] {
		ctx.Resp = goproxy.NewResponse( //nolint:bodyclose // goproxy sends it
			ctx.Req, goproxy.ContentTypeText, http.StatusForbidden, "denied")
		return &goproxy.ConnectAction{Action: goproxy.ConnectReject}, host
	}
	return goproxy.OkConnect, host
}

// open serves at one more address.
func (e *egress) open(ctx context.Context, ip string) error {
	l, err := listen(context.WithoutCancel(ctx), ip, e.Port)
	if err != nil {
		return err
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	e.listens[ip] = l
	go func() { _ = e.server.Serve(l) }()
	return nil
}

// shut ends an address; nothing answers there any more.
func (e *egress) shut(ip string) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if l, ok := e.listens[ip]; ok {
		_ = l.Close()
		delete(e.listens, ip)
	}
}

// refuse lets addresses deny every request, or serve again.
func (e *egress) refuse(on bool, ips ...string) {
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, ip := range ips {
		e.refuses[ip] = on
	}
}

func (e *egress) close() { _, _ = e.server.Close(), e.guard.Close() }

// site is the target of the probes, which can go away and come back.
type site struct {
	echo  *echo.Server
	guard net.Listener
	port  int
	stop  context.CancelFunc
	done  chan struct{}
}

func newSite(ctx context.Context) (*site, error) {
	e, err := echo.New()
	if err != nil {
		return nil, err
	}
	held, port, err := reserve(ctx)
	if err != nil {
		return nil, err
	}
	s := &site{echo: e, guard: held, port: port}
	return s, s.up(ctx)
}

func (s *site) close() {
	s.down()
	_ = s.guard.Close()
}

func (s *site) serve(ctx context.Context, l net.Listener) {
	ctx, s.stop = context.WithCancel(ctx)
	done := make(chan struct{})
	s.done = done
	go func() { defer close(done); _ = s.echo.Serve(ctx, l, slog.New(slog.DiscardHandler)) }()
}

func (s *site) down() {
	s.stop()
	<-s.done
}

func (s *site) up(ctx context.Context) error {
	l, err := listen(ctx, loopback, s.port)
	if err == nil {
		s.serve(ctx, l)
	}
	return err
}

func (s *site) target() probe.Target {
	return probe.Target{Host: loopback, Port: s.port, Roots: s.echo.Roots()}
}

// reserve takes the first port that is free on the guard and on the first address.
func reserve(ctx context.Context) (held net.Listener, port int, err error) {
	for port = firstPort; port <= lastPort; port++ {
		if held, err = listen(ctx, guard, port); err != nil {
			continue
		}
		var first net.Listener
		if first, err = listen(ctx, loopback, port); err == nil {
			return held, port, first.Close()
		}
		_ = held.Close()
	}
	return nil, 0, fmt.Errorf("%w (on macOS, an address of loopback needs `ifconfig lo0 alias` first)", err)
}

func listen(ctx context.Context, ip string, port int) (net.Listener, error) {
	return new(net.ListenConfig).Listen(ctx, "tcp", net.JoinHostPort(ip, strconv.Itoa(port)))
}
