// Package echo is a target for probes: over TLS, it tells whoever asks which address
// the question came from. It asks for no token and knows nothing. It imports the
// standard library only. Start reading at New.
package echo

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"time"
)

// Path is the only one that is answered.
const Path = "/"

const (
	// headerTimeout frees the connections of those who ask nothing.
	headerTimeout = 5 * time.Second
	// headerLimit is more than a question needs.
	headerLimit = 8 << 10
	// stopTimeout lets an answer that has begun end.
	stopTimeout = 2 * time.Second
)

// Server answers {"ip": "203.0.113.7"}. Its certificate is its own, made by New, and
// its key is nowhere but in memory.
type Server struct {
	certificate tls.Certificate
	roots       *x509.CertPool
}

// New returns a server with a new certificate for hosts, names or IP addresses; none
// is loopback.
func New(hosts ...string) (*Server, error) {
	if len(hosts) == 0 {
		hosts = []string{"127.0.0.1", "::1", "localhost"}
	}
	certificate, err := selfSigned(hosts)
	if err != nil {
		return nil, err
	}
	roots := x509.NewCertPool()
	roots.AddCert(certificate.Leaf)
	return &Server{certificate: certificate, roots: roots}, nil
}

// Roots trust this server's certificate and no other.
func (s *Server) Roots() *x509.CertPool { return s.roots }

// Serve answers on a listener until ctx ends, and closes it. It returns nil then, and
// an error when serving ended otherwise.
func (s *Server) Serve(ctx context.Context, l net.Listener, log *slog.Logger) error {
	server := &http.Server{
		Handler: http.HandlerFunc(answer), ReadHeaderTimeout: headerTimeout, ReadTimeout: headerTimeout,
		WriteTimeout: headerTimeout, IdleTimeout: headerTimeout, MaxHeaderBytes: headerLimit,
		TLSConfig: &tls.Config{Certificates: []tls.Certificate{s.certificate}, MinVersion: tls.VersionTLS12},
		// A broken handshake is a probe's business, which tells of it itself.
		ErrorLog: slog.NewLogLogger(log.Handler(), slog.LevelDebug),
	}
	stopped := make(chan struct{})
	stop := context.AfterFunc(ctx, func() {
		defer close(stopped)
		grace, cancel := context.WithTimeout(context.WithoutCancel(ctx), stopTimeout)
		defer cancel()
		if server.Shutdown(grace) != nil {
			_ = server.Close()
		}
	})
	err := server.ServeTLS(l, "", "")
	if !stop() { // ctx ended: Serve returns before the last answer does
		<-stopped
	}
	if errors.Is(err, http.ErrServerClosed) {
		return nil
	}
	return err
}

func answer(w http.ResponseWriter, r *http.Request) {
	if r.Method != http.MethodGet || r.URL.Path != Path {
		http.NotFound(w, r)
		return
	}
	peer, err := netip.ParseAddrPort(r.RemoteAddr)
	if err != nil {
		http.Error(w, "the peer has no address", http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Cache-Control", "no-store")
	_ = json.NewEncoder(w).Encode(map[string]netip.Addr{"ip": peer.Addr().Unmap().WithZone("")})
}
