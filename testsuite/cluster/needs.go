//go:build linux

package main

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"

	"github.com/egressfleet/egressfleet/testsuite/devserver"
)

// missing says what this machine lacks, and how to get it.
func missing() error {
	if os.Getuid() != 0 {
		return errors.New("namespaces and mounts need root")
	}
	if len(programsOf()) == 0 {
		return errors.New("PostgreSQL is not installed; on Debian: apt-get install -y --no-install-recommends postgresql")
	}
	for _, name := range []string{"ip", "unshare"} {
		if _, err := exec.LookPath(name); err != nil {
			return fmt.Errorf("%w; on Debian: apt-get install -y --no-install-recommends iproute2 util-linux", err)
		}
	}
	root, err := devserver.Root()
	if err != nil {
		return err
	}
	for _, name := range []string{"temporal", "temporal-server", "temporal-sql-tool", "worker", "starter"} {
		if _, err := os.Stat(filepath.Join(root, "bin", name)); err != nil {
			return fmt.Errorf("%w; `make e2e-cluster` builds it", err)
		}
	}
	return nil
}
