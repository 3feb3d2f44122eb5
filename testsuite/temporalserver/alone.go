package temporalserver

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"go.temporal.io/api/serviceerror"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/client"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/egressfleet/egressfleet/testsuite/devserver"
	"github.com/egressfleet/egressfleet/testsuite/ports"
	"github.com/egressfleet/egressfleet/testsuite/program"
)

const (
	loopback  = "127.0.0.1"
	namespace = "default"
	// retention is the least that Temporal takes but for tests of its own.
	retention = 24 * time.Hour
	// ready bounds the start of the server on a busy machine.
	ready     = 2 * time.Minute
	lookEvery = 200 * time.Millisecond
)

// Alone is one server on free ports of 127.0.0.1, with SQLite on a file. It knows no search
// attributes: the first worker makes them, as in production.
type Alone struct {
	*program.Program
	Address string // host:port
}

// NewAlone returns a server whose configuration, database and log are in the folder. It is
// not started.
func NewAlone(dir string) (*Alone, error) {
	root, err := devserver.Root()
	if err != nil {
		return nil, err
	}
	server := filepath.Join(root, "bin", "temporal-server")
	if _, err := os.Stat(server); err != nil {
		return nil, fmt.Errorf("%w: build it with `make tool-temporal-server`", err)
	}
	// A single connection, as SQLite has a single writer.
	store := fmt.Sprintf("{pluginName: sqlite, databaseName: %q, connectAddr: localhost, connectProtocol: tcp, "+
		"connectAttributes: {cache: private, setup: true, journal_mode: wal, synchronous: 1}, "+
		"maxConns: 1, maxIdleConns: 1, maxConnLifetime: 1h}", filepath.Join(dir, "temporal.db"))
	c := Config{Host: loopback, First: loopback, Shards: 1, Main: store, Visibility: store}
	for n := range c.Ports.RPC {
		var one, other error
		c.Ports.RPC[n], one = ports.Take()
		c.Ports.Membership[n], other = ports.Take()
		if err := errors.Join(one, other); err != nil {
			return nil, err
		}
	}
	args, err := c.Write(dir, "temporal")
	if err != nil {
		return nil, err
	}
	return &Alone{
		Program: program.New(dir, "temporal-server", append([]string{server}, args...)...),
		Address: net.JoinHostPort(loopback, strconv.Itoa(c.Ports.RPC[0])),
	}, nil
}

// Open starts the server and waits until it serves the namespace default, which it makes.
// The caller ends it, unless there is an error.
func (a *Alone) Open(ctx context.Context) error {
	if err := a.Start(); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, ready)
	defer cancel()
	for {
		err := Serves(ctx, a.Address, namespace)
		if _, unknown := errors.AsType[*serviceerror.NamespaceNotFound](err); unknown {
			err = a.makeNamespace(ctx)
		} else if err == nil {
			return nil
		}
		if ended := a.Alive(); ended != nil {
			return ended
		}
		select {
		case <-ctx.Done():
			return errors.Join(fmt.Errorf("waiting for temporal-server on %s: %w", a.Address, err), a.Kill())
		case <-time.After(lookEvery):
		}
	}
}

func (a *Alone) makeNamespace(ctx context.Context) error {
	c, err := client.NewNamespaceClient(client.Options{HostPort: a.Address, Logger: devserver.Quiet()})
	if err != nil {
		return err
	}
	defer c.Close()
	err = c.Register(ctx, &workflowservice.RegisterNamespaceRequest{
		Namespace: namespace, WorkflowExecutionRetentionPeriod: durationpb.New(retention),
	})
	if _, there := errors.AsType[*serviceerror.NamespaceAlreadyExists](err); there {
		return nil // not every part has learned of it
	}
	return err
}
