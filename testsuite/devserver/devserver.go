// Package devserver starts the Temporal development server that was built from
// tools/temporal, for suites that need a real one. Start reading at Start.
package devserver

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/log"
	"go.temporal.io/sdk/testsuite"

	"github.com/egressfleet/egressfleet/testsuite/ports"
	"github.com/egressfleet/egressfleet/workflows/proxy"
)

// ready bounds the start of the server on a busy machine.
const ready = 2 * time.Minute

// Server is one development server with its store in memory, on a free port of
// 127.0.0.1.
type Server struct {
	Address string // host:port
	CLI     string // path of the temporal command
	dev     *testsuite.DevServer
}

// Start starts a server that knows the search attributes. The caller stops it.
func Start(ctx context.Context) (*Server, error) { return start(ctx, attributes()) }

// StartBare starts a server that knows nothing of ours. The caller stops it.
func StartBare(ctx context.Context) (*Server, error) { return start(ctx, nil) }

func start(ctx context.Context, args []string) (*Server, error) {
	cli, err := CLI()
	if err != nil {
		return nil, err
	}
	port, err := ports.Take()
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, ready)
	defer cancel()
	dev, err := testsuite.StartDevServer(ctx, testsuite.DevServerOptions{
		ExistingPath:  cli,
		ClientOptions: &client.Options{HostPort: address(port), Logger: Quiet()},
		LogLevel:      "error",
		Stdout:        io.Discard, Stderr: io.Discard,
		ExtraArgs: args,
	})
	if err != nil {
		return nil, fmt.Errorf("starting %s: %w", cli, err)
	}
	return &Server{Address: dev.FrontendHostPort(), CLI: cli, dev: dev}, nil
}

func address(port int) string { return net.JoinHostPort("127.0.0.1", strconv.Itoa(port)) }

// Stop ends the server.
func (s *Server) Stop() error { return s.dev.Stop() }

// CLI returns the path of the temporal command in bin/ of this module.
func CLI() (string, error) {
	root, err := Root()
	if err != nil {
		return "", err
	}
	cli := filepath.Join(root, "bin", "temporal")
	if _, err := os.Stat(cli); err != nil {
		return "", fmt.Errorf("%w: build it with `go run ./tools/build temporal`, as `make test` does", err)
	}
	return cli, nil
}

// Root returns the folder of this module's go.mod.
func Root() (string, error) {
	dir, err := os.Getwd()
	for err == nil {
		if _, missing := os.Stat(filepath.Join(dir, "go.mod")); missing == nil {
			return dir, nil
		}
		parent := filepath.Dir(dir)
		if parent == dir {
			err = errors.New("no go.mod in this folder or above it")
		}
		dir = parent
	}
	return "", err
}

// Quiet is a logger that says nothing: a suite breaks things on purpose.
func Quiet() log.Logger { return silent{} }

type silent struct{}

func (silent) Debug(string, ...any) {}
func (silent) Info(string, ...any)  {}
func (silent) Warn(string, ...any)  {}
func (silent) Error(string, ...any) {}

func attributes() (args []string) {
	for _, key := range proxy.SearchAttributes() {
		args = append(args, "--search-attribute", key.GetName()+"="+key.GetValueType().String())
	}
	return args
}
