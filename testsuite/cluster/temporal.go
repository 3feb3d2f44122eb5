//go:build linux

package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"

	"go.temporal.io/api/operatorservice/v1"
	"go.temporal.io/api/serviceerror"
	"go.temporal.io/api/workflowservice/v1"
	sdk "go.temporal.io/sdk/client"

	"github.com/egressfleet/egressfleet/starter/fleet"
	"github.com/egressfleet/egressfleet/testsuite/devserver"
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

// serverConfig is one of two servers, with all four services. rpcAddress is the same for
// both: each server writes it into the record of the cluster where it differs.
const serverConfig = `log: {stdout: true, level: warn}
persistence:
  defaultStore: default
  visibilityStore: visibility
  numHistoryShards: 16
  datastores:
    default: {sql: {databaseName: temporal, maxConns: 40, maxIdleConns: 40, SQL}}
    visibility: {sql: {databaseName: temporal_visibility, maxConns: 10, maxIdleConns: 10, SQL}}
global:
  membership: {maxJoinDuration: 30s, broadcastAddress: HOST}
services:
  frontend: {rpc: {grpcPort: 7233, membershipPort: 6933, httpPort: 7243, bindOnIP: HOST}}
  matching: {rpc: {grpcPort: 7235, membershipPort: 6935, bindOnIP: HOST}}
  history: {rpc: {grpcPort: 7234, membershipPort: 6934, bindOnIP: HOST}}
  worker: {rpc: {grpcPort: 7239, membershipPort: 6939, bindOnIP: HOST}}
clusterMetadata:
  enableGlobalNamespace: false
  failoverVersionIncrement: 10
  masterClusterName: active
  currentClusterName: active
  clusterInformation:
    active: {enabled: true, initialFailoverVersion: 1, rpcName: frontend, rpcAddress: "FIRST:7233"}
dcRedirectionPolicy: {policy: noop}
`

// openServers starts two servers and dials them.
func (w *world) openServers(ctx context.Context) error {
	if err := w.nameServers(); err != nil {
		return err
	}
	store := fmt.Sprintf("pluginName: postgres12, connectAddr: %q, connectProtocol: tcp, user: %s, password: unused, "+
		"maxConnLifetime: 1h", databaseHost+":"+databasePort, databaseUser)
	for n := range pairs {
		name := "temporal-" + strconv.Itoa(n+1)
		text := strings.NewReplacer("SQL", store, "HOST", serverHost(n), "FIRST", serverHost(0)).Replace(serverConfig)
		if err := w.write(filepath.Join(name, "production.yaml"), text); err != nil {
			return err
		}
		w.servers[n] = newProgram(w.dir, name, w.built("temporal-server"), "--root", w.dir, "--config", name,
			"--env", "production", "--allow-no-auth", "start")
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
		if err := s.start(); err != nil {
			return err
		}
		err := w.until(ctx, startWithin, s.name+" serves the namespace", func(ctx context.Context) error {
			err := w.knows(ctx, serverHost(n))
			if _, unknown := errors.AsType[*serviceerror.NamespaceNotFound](err); unknown && n == 0 {
				err = w.cli(ctx, "operator", "namespace", "create", "--namespace", temporalNamespace, "--retention", retention)
			}
			if err != nil {
				return errors.Join(err, s.alive())
			}
			return nil
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// knows returns nil once a server answers what a worker asks first. Each of its parts
// learns of a new namespace by itself.
func (w *world) knows(ctx context.Context, host string) error {
	c, err := sdk.DialContext(ctx, sdk.Options{
		HostPort: fmt.Sprintf("%s:%d", host, frontendPort), Namespace: temporalNamespace, Logger: devserver.Quiet(),
	})
	if err != nil {
		return err
	}
	defer c.Close()
	if _, err = c.ListWorkflow(ctx, &workflowservice.ListWorkflowExecutionsRequest{}); err != nil {
		return err
	}
	_, err = c.OperatorService().ListSearchAttributes(ctx, &operatorservice.ListSearchAttributesRequest{
		Namespace: temporalNamespace,
	})
	return err
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
