package local

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/textproto"
	"os"
	"strings"
	"time"

	"github.com/elazarl/goproxy"
)

const (
	dialLimit   = 10 * time.Second // to reach a target, name lookup included
	headerLimit = 10 * time.Second // for a client to say what it wants
	answerLimit = 2 * time.Minute  // for a target to begin its answer
	idleLimit   = 5 * time.Minute  // without a byte in either direction
	headerBytes = 64 << 10         // of a request

	idlePerHost = 8 // connections kept for the next request to one target
	idleKept    = 30 * time.Second
)

// proxyServer is the HTTP server around the forward proxy.
type proxyServer struct {
	http    *http.Server
	idle    time.Duration
	tunnels *tunnels
}

// newProxyServer takes the address that it will serve on, and how long nothing may
// go over a connection.
func newProxyServer(at net.Addr, idle time.Duration, log *slog.Logger) *proxyServer {
	tunnels := new(tunnels)
	return &proxyServer{
		idle:    idle,
		tunnels: tunnels,
		http: &http.Server{
			Handler:           newProxy(newEgress(at, idle), tunnels),
			ReadHeaderTimeout: headerLimit,
			IdleTimeout:       idle,
			MaxHeaderBytes:    headerBytes,
			ConnContext:       withClient,
			ErrorLog:          slog.NewLogLogger(log.Handler(), slog.LevelWarn),
		},
	}
}

// Serve is the proxy of an instance on somebody else's listener, which it closes. It
// returns nil once ctx has ended, and what is under way has ended or was given up. Other
// loopback backends serve with it, such as the fake of Compute Engine.
func Serve(ctx context.Context, l net.Listener, log *slog.Logger) error {
	s := newProxyServer(l.Addr(), idleLimit, log)
	served := make(chan error, 1)
	go func() { served <- s.serve(l) }()
	select {
	case <-ctx.Done():
		s.end(context.WithoutCancel(ctx), graceTime)
		return <-served
	case err := <-served:
		return err
	}
}

func (s *proxyServer) serve(l net.Listener) error {
	err := s.http.Serve(gate{l, s.idle})
	if errors.Is(err, http.ErrServerClosed) {
		return nil
	}
	return err
}

// end lets requests and tunnels under way finish, for at most the grace time.
func (s *proxyServer) end(ctx context.Context, grace time.Duration) {
	ctx, cancel := context.WithTimeout(ctx, grace)
	defer cancel()
	if err := s.http.Shutdown(ctx); err == nil {
		s.tunnels.wait(ctx)
	}
	_ = s.http.Close()
}

// newProxy returns the forward proxy: CONNECT, and plain HTTP in absolute form. It
// looks into no tunnel, takes no settings from its environment and logs no request.
func newProxy(out *egress, tunnels *tunnels) http.Handler {
	proxy := goproxy.NewProxyHttpServer()
	proxy.Logger = silent{}
	proxy.KeepAcceptEncoding = true
	proxy.NonproxyHandler = http.HandlerFunc(notAProxyRequest)
	proxy.Tr = out.transport()
	proxy.ConnectDial = nil // it would follow the variables for an upstream proxy
	proxy.ConnectDialWithReq = func(req *http.Request, network, addr string) (net.Conn, error) {
		target, err := out.dial(req.Context(), network, addr)
		if err != nil {
			return nil, err
		}
		tunnels.join(clientOf(req.Context()), target)
		return target, nil
	}
	proxy.ConnectionErrHandler = func(w io.Writer, _ *goproxy.ProxyCtx, err error) { writeBadGateway(w, err) }
	proxy.OnRequest().DoFunc(prepare)
	proxy.OnResponse().DoFunc(finish)
	return proxy
}

// silent is the logger of goproxy: its lines have addresses that clients asked for.
type silent struct{}

func (silent) Printf(string, ...any) {}

func notAProxyRequest(w http.ResponseWriter, _ *http.Request) {
	http.Error(w, "this is a forward proxy: send CONNECT host:port, or a request with an absolute http:// URL",
		http.StatusBadRequest)
}

// hopByHop are the headers between one client and one proxy, besides those that
// Connection names. Upgrade goes with them: a WebSocket comes through CONNECT.
var hopByHop = []string{
	"Connection", "Keep-Alive", "Proxy-Connection", "Proxy-Authorization", "Proxy-Authenticate",
	"Te", "Trailer", "Upgrade",
}

// prepare makes a request fit to be sent on: nothing that was meant for the proxy,
// and nothing that tells of the client beyond what the client sent itself.
func prepare(r *http.Request, _ *goproxy.ProxyCtx) (*http.Request, *http.Response) {
	if r.URL.Scheme != "http" {
		return r, goproxy.NewResponse(r, goproxy.ContentTypeText, http.StatusBadRequest,
			"this proxy forwards http:// URLs; use CONNECT for everything else\n")
	}
	dropHopByHop(r.Header)
	if _, ok := r.Header["User-Agent"]; !ok {
		r.Header.Set("User-Agent", "") // or the transport would add its own
	}
	return r, nil
}

// finish also turns a failure into an answer that says why.
func finish(r *http.Response, ctx *goproxy.ProxyCtx) *http.Response {
	if r != nil {
		dropHopByHop(r.Header)
		if _, ok := r.Header["Content-Type"]; !ok {
			r.Header["Content-Type"] = nil // or the server would guess one
		}
		return r
	}
	code, text := badGateway(ctx.Error)
	return goproxy.NewResponse(ctx.Req, goproxy.ContentTypeText, code, text)
}

func dropHopByHop(h http.Header) {
	for _, line := range h.Values("Connection") {
		for name := range strings.SplitSeq(line, ",") {
			h.Del(textproto.TrimString(name))
		}
	}
	for _, name := range hopByHop {
		h.Del(name)
	}
}

// badGateway says in the body what the machine said: DNS, refused, unreachable.
func badGateway(err error) (code int, text string) {
	if err == nil {
		err = errors.New("no answer")
	}
	if errors.Is(err, os.ErrDeadlineExceeded) || errors.Is(err, context.DeadlineExceeded) {
		return http.StatusGatewayTimeout, "target timed out: " + err.Error() + "\n"
	}
	return http.StatusBadGateway, "target not reached: " + err.Error() + "\n"
}

// writeBadGateway answers a CONNECT, whose connection is no longer the server's.
func writeBadGateway(w io.Writer, err error) {
	code, text := badGateway(err)
	_, _ = fmt.Fprintf(w, "HTTP/1.1 %d %s\r\nContent-Type: text/plain; charset=utf-8\r\n"+
		"Content-Length: %d\r\nConnection: close\r\n\r\n%s", code, http.StatusText(code), len(text), text)
}
