//go:build tools && linux

package snippets

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"syscall"
	"testing"
)

// What the process that runs the tests finds in its environment.
const (
	isolatedEnv = "SNIPPETS_ISOLATED" // set where there is no way out
	modulesEnv  = "SNIPPETS_NODE"     // the folder with node_modules
)

// siteName is what the page asks for, and siteAddress is where the tests serve it. The
// address is none that programs go to without a proxy by themselves.
const siteName, siteAddress = "example.com", "127.0.0.2"

// TestMain runs the tests in namespaces of their own: nothing that the snippets start can
// reach anything but this machine, the ports of `make run` are free whatever else runs
// here, and the kernel ends everything with the run.
func TestMain(m *testing.M) {
	if os.Getenv(isolatedEnv) != "" {
		os.Exit(m.Run())
	}
	code, err := isolate()
	if err != nil {
		fmt.Fprintln(os.Stderr, "snippets:", err)
		code = 1
	}
	os.Exit(code)
}

// script is the first process of the namespaces. It stays, and buries what others leave.
const script = `ip link set lo up
mount --bind "$1" /etc/hosts
shift
code=0; "$@" || code=$?; exit $code`

func isolate() (int, error) {
	if os.Getuid() != 0 {
		return 0, errors.New("namespaces need root")
	}
	dir, err := os.MkdirTemp("", "egressfleet-snippets-")
	if err != nil {
		return 0, err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	hosts := filepath.Join(dir, "hosts")
	text := "127.0.0.1 localhost\n" + siteAddress + " " + siteName + "\n"
	if err := errors.Join(os.WriteFile(hosts, []byte(text), 0o600), modules(dir)); err != nil {
		return 0, err
	}
	self, err := os.Executable()
	if err != nil {
		return 0, err
	}
	args := append([]string{
		"--mount", "--pid", "--net", "--fork", "--kill-child", "--mount-proc", "--propagation", "private",
		"sh", "-ec", script, "sh", hosts, self,
	}, os.Args[1:]...)
	cmd := exec.Command("unshare", args...) //nolint:noctx // it is this program, and outlives no run
	cmd.Env = append(os.Environ(), isolatedEnv+"=1", modulesEnv+"="+dir, "TMPDIR="+dir)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stdout, os.Stderr
	runtime.LockOSThread() // the kernel ends the child together with the thread that started it
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	err = cmd.Run()
	if failed, ok := errors.AsType[*exec.ExitError](err); ok {
		return failed.ExitCode(), nil
	}
	return 0, err
}

// modules installs what testdata/package-lock.json pins, with its checksum, from the
// registry that npm knows. It is the one thing that needs the network, once.
func modules(dir string) error {
	for _, name := range []string{"package.json", "package-lock.json"} {
		text, err := os.ReadFile(filepath.Join("testdata", name))
		if err == nil {
			err = os.WriteFile(filepath.Join(dir, name), text, 0o600)
		}
		if err != nil {
			return err
		}
	}
	cmd := exec.Command("npm", "ci", "--ignore-scripts", "--no-audit", "--no-fund") //nolint:noctx // npm gives up
	cmd.Dir = dir
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("npm ci, with testdata/package-lock.json: %w\n%s", err, out)
	}
	return nil
}
