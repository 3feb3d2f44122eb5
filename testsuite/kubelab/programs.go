//go:build linux

package kubelab

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/egressfleet/egressfleet/testsuite/devserver"
)

// Programs are those that tools/build makes for clusters.
func Programs() []string {
	return []string{"kube-apiserver", "kube-controller-manager", "kube-scheduler", "kubelet", "kwok"}
}

// programs returns the folder of the programs, and an error that says how to get those
// that are not there.
func programs() (string, error) {
	root, err := devserver.Root()
	if err != nil {
		return "", err
	}
	bin := filepath.Join(root, "bin")
	for _, name := range Programs() {
		if _, err := os.Stat(filepath.Join(bin, name)); err != nil {
			return "", fmt.Errorf("%w: build it with `go run ./tools/build %s`", err, strings.Join(Programs(), " "))
		}
	}
	return bin, nil
}
