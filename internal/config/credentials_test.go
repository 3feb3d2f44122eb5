package config_test

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/client"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/metadata"

	"github.com/egressfleet/egressfleet/internal/config"
	"github.com/egressfleet/egressfleet/testsuite/certificates"
	"github.com/egressfleet/egressfleet/testsuite/output"
)

// guarded is a Temporal that lets nobody in without a certificate that it trusts, and
// remembers what a caller said of itself.
type guarded struct {
	workflowservice.UnimplementedWorkflowServiceServer

	address string
	ca      string // file

	mu      sync.Mutex
	trusted *x509.CertPool
	said    []string
}

func (g *guarded) GetSystemInfo(
	ctx context.Context, _ *workflowservice.GetSystemInfoRequest,
) (*workflowservice.GetSystemInfoResponse, error) {
	got, _ := metadata.FromIncomingContext(ctx)
	g.mu.Lock()
	defer g.mu.Unlock()
	g.said = got.Get("authorization")
	return &workflowservice.GetSystemInfoResponse{}, nil
}

func (g *guarded) trust(pool *x509.CertPool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.trusted = pool
}

func (g *guarded) verify(raw [][]byte, _ [][]*x509.Certificate) error {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.trusted == nil {
		return nil
	}
	if len(raw) == 0 {
		return errors.New("no certificate")
	}
	leaf, err := x509.ParseCertificate(raw[0])
	if err != nil {
		return err
	}
	_, err = leaf.Verify(x509.VerifyOptions{Roots: g.trusted, KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageAny}})
	return err
}

func (g *guarded) authorization() []string {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.said
}

func serve(t *testing.T) *guarded {
	t.Helper()
	dir := t.TempDir()
	g := &guarded{ca: filepath.Join(dir, "tls.crt")}
	certificates.Write(t, g.ca, filepath.Join(dir, "tls.key"))
	own, err := tls.LoadX509KeyPair(g.ca, filepath.Join(dir, "tls.key"))
	require.NoError(t, err)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	g.address = l.Addr().String()
	s := grpc.NewServer(grpc.Creds(credentials.NewTLS(&tls.Config{
		Certificates: []tls.Certificate{own}, ClientAuth: tls.RequestClientCert, VerifyPeerCertificate: g.verify,
		MinVersion: tls.VersionTLS12,
	})))
	workflowservice.RegisterWorkflowServiceServer(s, g)
	go func() { _ = s.Serve(l) }()
	t.Cleanup(s.Stop)
	return g
}

// environ names the server and the authority that it is known by.
func (g *guarded) environ(more environment) environment {
	e := environment{
		"TEMPORAL_CONFIG_FILE": os.DevNull, "TEMPORAL_ADDRESS": g.address, "TEMPORAL_TLS": "true",
		"TEMPORAL_TLS_SERVER_CA_CERT_PATH": g.ca,
	}
	for name, value := range more {
		e[name] = value
	}
	return e
}

// dial makes a connection of its own each time.
func dial(t *testing.T, server config.Server) error {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	server.Options.Logger = quietLog{}
	c, err := client.DialContext(ctx, server.Options)
	if err == nil {
		c.Close()
	}
	return err
}

type quietLog struct{}

func (quietLog) Debug(string, ...any) {}
func (quietLog) Info(string, ...any)  {}
func (quietLog) Warn(string, ...any)  {}
func (quietLog) Error(string, ...any) {}

func TestAClientCertificateIsShownAndFollowed(t *testing.T) {
	t.Parallel()
	g := serve(t)
	dir := t.TempDir()
	certificate, key := filepath.Join(dir, "tls.crt"), filepath.Join(dir, "tls.key")
	g.trust(certificates.Write(t, certificate, key))
	require.Error(t, dial(t, serverOf(t, config.Temporal{}, g.environ(nil))), "nobody without a certificate")

	server := serverOf(t, config.Temporal{}, g.environ(environment{
		"TEMPORAL_TLS_CLIENT_CERT_PATH": certificate, "TEMPORAL_TLS_CLIENT_KEY_PATH": key,
	}))
	require.NoError(t, dial(t, server))
	g.trust(certificates.Write(t, certificate, key))
	require.Eventually(t, func() bool { return dial(t, server) == nil }, 10*time.Second, 50*time.Millisecond,
		"the next connection has the certificate that is there now")
}

func TestAnAPIKeyIsReadFromItsFileAndFollowed(t *testing.T) {
	t.Parallel()
	g := serve(t)
	file := filepath.Join(t.TempDir(), "key")
	require.NoError(t, os.WriteFile(file, []byte("first\n"), 0o600))
	server := serverOf(t, config.Temporal{APIKeyFile: file}, g.environ(nil))
	require.NoError(t, dial(t, server))
	require.Equal(t, []string{"Bearer first"}, g.authorization())

	require.NoError(t, os.WriteFile(file, []byte("second\n"), 0o600))
	require.Eventually(t, func() bool {
		require.NoError(t, dial(t, server))
		return g.authorization()[0] == "Bearer second"
	}, 10*time.Second, 50*time.Millisecond)
}

func TestAnAPIKeyOfAVariableIsSent(t *testing.T) {
	t.Parallel()
	g := serve(t)
	require.NoError(t, dial(t, serverOf(t, config.Temporal{}, g.environ(environment{"TEMPORAL_API_KEY": "static"}))))
	require.Equal(t, []string{"Bearer static"}, g.authorization())
}

func TestAKeyFileThatTurnsBadChangesNothing(t *testing.T) {
	t.Parallel()
	g := serve(t)
	file := filepath.Join(t.TempDir(), "key")
	require.NoError(t, os.WriteFile(file, []byte("sentinel"), 0o600))
	var log output.Log
	server, err := config.Temporal{APIKeyFile: file}.Server(g.environ(nil), slog.New(slog.NewTextHandler(&log, nil)))
	require.NoError(t, err)
	require.NoError(t, os.Remove(file))
	require.Eventually(t, func() bool {
		require.NoError(t, dial(t, server))
		return strings.Contains(log.String(), "temporal.apiKeyFile: open "+file)
	}, 10*time.Second, 50*time.Millisecond)
	require.Equal(t, []string{"Bearer sentinel"}, g.authorization())
	require.NotContains(t, log.String(), "sentinel")
}

func TestWithAKeyThereIsTLS(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "key")
	require.NoError(t, os.WriteFile(file, []byte("key"), 0o600))
	server := serverOf(t, config.Temporal{APIKeyFile: file}, environment{"TEMPORAL_CONFIG_FILE": os.DevNull})
	require.NotNil(t, server.Options.ConnectionOptions.TLS)
}

func TestCredentialsThatCannotBeAreNamedWithoutTheirContent(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	file := func(name, text string) string {
		path := filepath.Join(dir, name)
		require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
		return path
	}
	good, twoLines, empty := file("good", "sentinel"), file("two", "sentinel\nsentinel"), file("empty", "\n")
	plain := environment{"TEMPORAL_TLS": "false", "TEMPORAL_ADDRESS": "t.example:7233"}
	for name, tt := range map[string]struct {
		file string
		env  environment
		want string
	}{
		"a file that is not there": {filepath.Join(dir, "none"), nil, "temporal.apiKeyFile: open "},
		"two lines":                {twoLines, nil, twoLines + ": is not one line with a key"},
		"nothing":                  {empty, nil, empty + ": is not one line with a key"},
		"two keys":                 {good, environment{"TEMPORAL_API_KEY": "sentinel"}, "TEMPORAL_API_KEY"},
		"a file without TLS":       {good, plain, "not sent to t.example:7233 in plain text"},
		"a variable without TLS": {
			"",
			environment{"TEMPORAL_API_KEY": "sentinel", "TEMPORAL_TLS": "false", "TEMPORAL_ADDRESS": "t.example:7233"},
			"not sent to t.example:7233 in plain text",
		},
		"a certificate that is none": {
			"", environment{"TEMPORAL_TLS_CLIENT_CERT_PATH": good, "TEMPORAL_TLS_CLIENT_KEY_PATH": good}, "TEMPORAL_*",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			env := environment{"TEMPORAL_CONFIG_FILE": os.DevNull}
			for key, value := range tt.env {
				env[key] = value
			}
			_, err := config.Temporal{APIKeyFile: tt.file}.Server(env, slog.Default())
			require.ErrorContains(t, err, tt.want)
			require.NotContains(t, err.Error(), "sentinel")
		})
	}
}

func serverOf(t *testing.T, temporal config.Temporal, env environment) config.Server {
	t.Helper()
	server, err := temporal.Server(env, slog.New(slog.DiscardHandler))
	require.NoError(t, err)
	return server
}
