package local

import (
	"context"
	"errors"
	"net"
	"net/http"
	"os"
	"syscall"
	"time"
)

// egress is how the proxy reaches targets.
type egress struct {
	dialer net.Dialer
	idle   time.Duration
}

// newEgress makes targets on this machine see the instance's own address. To all
// others a loopback source could not even be routed.
func newEgress(at net.Addr, idle time.Duration) *egress {
	var own [4]byte
	if tcp, ok := at.(*net.TCPAddr); ok {
		copy(own[:], tcp.IP.To4())
	}
	return &egress{idle: idle, dialer: net.Dialer{
		Timeout: dialLimit,
		// Called with the address that a name resolved to, once for each that is tried.
		Control: func(network, address string, c syscall.RawConn) error {
			if network != "tcp4" || !isLoopbackTarget(address) {
				return nil
			}
			return bindTo(c, own)
		},
	}}
}

func isLoopbackTarget(address string) bool {
	host, _, err := net.SplitHostPort(address)
	ip := net.ParseIP(host)
	return err == nil && ip != nil && ip.To4() != nil && ip.IsLoopback()
}

func bindTo(c syscall.RawConn, own [4]byte) error {
	var bindErr error
	err := c.Control(func(fd uintptr) {
		bindErr = os.NewSyscallError("bind", syscall.Bind(int(fd), &syscall.SockaddrInet4{Addr: own}))
	})
	return errors.Join(err, bindErr)
}

func (e *egress) dial(ctx context.Context, network, addr string) (*conn, error) {
	c, err := e.dialer.DialContext(ctx, network, addr)
	if err != nil {
		return nil, err
	}
	return &conn{Conn: c, idle: e.idle}, nil
}

func (e *egress) transport() *http.Transport {
	return &http.Transport{
		Proxy: nil, // never from the environment
		DialContext: func(ctx context.Context, network, addr string) (net.Conn, error) {
			target, err := e.dial(ctx, network, addr)
			if err != nil {
				return nil, err // not target: a nil *conn is no nil net.Conn
			}
			newWatch(e.idle, func() {}, target)
			return target, nil
		},
		DisableCompression:     true, // bodies pass as they are
		ResponseHeaderTimeout:  answerLimit,
		ExpectContinueTimeout:  time.Second,
		MaxIdleConnsPerHost:    idlePerHost,
		IdleConnTimeout:        idleKept,
		MaxResponseHeaderBytes: headerBytes * 4,
	}
}
