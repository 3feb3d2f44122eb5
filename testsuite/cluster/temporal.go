//go:build linux

package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"syscall"

	"go.temporal.io/api/serviceerror"
	sdk "go.temporal.io/sdk/client"

	"github.com/egressfleet/egressfleet/starter/fleet"
	"github.com/egressfleet/egressfleet/testsuite/devserver"
	"github.com/egressfleet/egressfleet/testsuite/program"
	"github.com/egressfleet/egressfleet/testsuite/temporalserver"
)

const (
	// frontends is the name of both servers, as a balanced name or a headless Service is
	// elsewhere. Each has an address of its own.
	frontends         = "temporal.cluster.test"
	frontendPort      = 7233
	temporalNamespace = "egress"
	// retention is the least that Temporal takes but for tests of its own.
	retention = "24h"
)

func serverHost(n int) string { return "127.0.0." + strconv.Itoa(11+n) }

// store is a database of Temporal, with so many connections of each server.
func store(name string, connections int) string {
	return fmt.Sprintf("{pluginName: postgres12, databaseName: %s, connectAddr: %q, connectProtocol: tcp, user: %s, "+
		"password: unused, maxConns: %d, maxIdleConns: %[4]d, maxConnLifetime: 1h}",
		name, net.JoinHostPort(databaseHost, databasePort), databaseUser, connections)
}

// openServers starts two servers and dials them.
func (w *world) openServers(ctx context.Context) error {
	if err := w.nameServers(); err != nil {
		return err
	}
	for n := range pairs {
		name := "temporal-" + strconv.Itoa(n+1)
		args, err := temporalserver.Config{
			Host: serverHost(n), First: serverHost(0), Shards: 16, Ports: temporalserver.Usual(),
			Main: store("temporal", 40), Visibility: store("temporal_visibility", 10),
		}.Write(w.dir, name)
		if err != nil {
			return err
		}
		w.servers[n] = program.New(w.dir, name, append([]string{w.built("temporal-server")}, args...)...)
	}
	if err := w.startServers(ctx); err != nil {
		return err
	}
	var err error
	w.temporal, err = sdk.DialContext(ctx, sdk.Options{
		HostPort: fmt.Sprintf("%s:%d", frontends, frontendPort), Namespace: temporalNamespace, Logger: devserver.Quiet(),
	})
	if err != nil {
		return err
	}
	w.fleet = fleet.New(w.temporal, installation)
	return nil
}

// nameServers has the name of the servers stand for both addresses, in the mounts of this
// run only.
func (w *world) nameServers() error {
	text := "127.0.0.1 localhost\n"
	for n := range pairs {
		text += serverHost(n) + " " + frontends + "\n"
	}
	if err := w.write("hosts", text); err != nil {
		return err
	}
	if err := syscall.Mount(filepath.Join(w.dir, "hosts"), "/etc/hosts", "", syscall.MS_BIND, ""); err != nil {
		return fmt.Errorf("mounting over /etc/hosts: %w", err)
	}
	return nil
}

// startServers starts one server, has it make the namespace, and then the other one: on a
// new database two that start at once both write the record of the cluster, and one of
// them ends.
func (w *world) startServers(ctx context.Context) error {
	for n, s := range w.servers {
		if err := s.Start(); err != nil {
			return err
		}
		address := net.JoinHostPort(serverHost(n), strconv.Itoa(frontendPort))
		err := w.until(ctx, startWithin, s.Name+" serves the namespace", func(ctx context.Context) error {
			err := temporalserver.Serves(ctx, address, temporalNamespace)
			if _, unknown := errors.AsType[*serviceerror.NamespaceNotFound](err); unknown && n == 0 {
				err = w.cli(ctx, "operator", "namespace", "create", "--namespace", temporalNamespace, "--retention", retention)
			}
			if err != nil {
				return errors.Join(err, s.Alive())
			}
			return nil
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// cli runs the temporal command.
func (w *world) cli(ctx context.Context, args ...string) error {
	address := fmt.Sprintf("%s:%d", serverHost(0), frontendPort)
	return run(ctx, nil, append([]string{
		w.built("temporal"), "--address", address, "--namespace", temporalNamespace,
	}, args...)...)
}

// write puts a file into the folder of the run.
func (w *world) write(name, text string) error {
	path := filepath.Join(w.dir, name)
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return err
	}
	return os.WriteFile(path, []byte(text), 0o600)
}
