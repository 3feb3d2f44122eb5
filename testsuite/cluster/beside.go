//go:build linux

package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strconv"
	"time"

	"github.com/egressfleet/egressfleet/testsuite/bench/create"
	"github.com/egressfleet/egressfleet/testsuite/devserver"
)

// beside runs a command beside both servers of Temporal and their database, without
// workers or APIs of this program: `cluster bin/bench create` measures them. The command
// learns from its environment where they are.
func beside(ctx context.Context, out io.Writer, argv []string) (clean bool, err error) {
	w := &world{out: os.Stderr, begun: time.Now(), dir: os.Getenv(envDir)}
	if w.root, err = devserver.Root(); err != nil {
		return false, err
	}
	for _, open := range []func(context.Context) error{w.openDatabase, w.openServers} {
		if err := open(ctx); err != nil {
			return false, err
		}
	}
	cmd := exec.CommandContext(ctx, argv[0], argv[1:]...) //nolint:gosec // what the caller names
	cmd.Dir, cmd.Stdout, cmd.Stderr = w.root, out, os.Stderr
	cmd.Env = append(os.Environ(),
		create.EnvTemporal+"="+frontends+":"+strconv.Itoa(frontendPort), create.EnvNamespace+"="+temporalNamespace,
		fmt.Sprintf("%s=server=%d,%d database=%d", create.EnvProcesses,
			w.servers[0].PID(), w.servers[1].PID(), w.database.PID()))
	if err := cmd.Run(); err != nil {
		return false, fmt.Errorf("%v: %w", argv, err)
	}
	return true, nil
}
