package kvmlab

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

// stageEnv says how far into the namespaces this process is: a test binary with a lab
// starts itself again, three times.
const stageEnv = "KVMLAB_STAGE"

const (
	stageInit   = "init"   // the first process of the run's namespaces
	stageInside = "inside" // runs the tests
	stageHost   = "host"   // the first process of a host
)

// failed is the exit status of a stage that could not be entered.
const failed = 1

// Main starts the lab, runs the tests inside and returns their exit status. It is for
// TestMain; the tests find the lab by Current.
func Main(m *testing.M) int {
	code, err := enter(m)
	if err != nil {
		fmt.Fprintln(os.Stderr, "kvmlab:", err)
		return failed
	}
	return code
}

func enter(m *testing.M) (int, error) {
	switch stage := os.Getenv(stageEnv); stage {
	case "":
		return isolate()
	case stageInit:
		return runInit()
	case stageInside:
		return runInside(m)
	case stageHost:
		return runHost()
	default:
		return 0, fmt.Errorf("%s=%q is none of its stages", stageEnv, stage)
	}
}

// isolate runs this program again, in namespaces of its own.
func isolate() (int, error) {
	if os.Getuid() != 0 {
		return 0, errors.New("namespaces, mounts and libvirtd need root")
	}
	runtime.LockOSThread() // the kernel ends the child together with the thread that started it
	cmd := again(stageInit, syscall.CLONE_NEWNET|syscall.CLONE_NEWNS|syscall.CLONE_NEWPID)
	cmd.SysProcAttr.Pdeathsig = syscall.SIGKILL
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stdout, os.Stderr
	err := cmd.Run()
	if exit := (*exec.ExitError)(nil); errors.As(err, &exit) {
		return exit.ExitCode(), nil
	}
	if err != nil {
		return 0, fmt.Errorf("making namespaces: %w", err)
	}
	return 0, nil
}

// again is this program at another stage, in new namespaces.
func again(stage string, namespaces uintptr) *exec.Cmd {
	cmd := exec.Command("/proc/self/exe", os.Args[1:]...) //nolint:noctx,gosec // it is this program, and outlives no run
	cmd.Args[0] = os.Args[0]
	cmd.Env = append(os.Environ(), stageEnv+"="+stage)
	cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: namespaces}
	return cmd
}

// runInit prepares the namespaces and reaps what is orphaned in them: libvirt waits for a
// guest's process to be gone, and would wait for a zombie forever.
func runInit() (int, error) {
	if err := privateMounts(); err != nil {
		return 0, err
	}
	if err := mount("tmpfs", filepath.Dir(base), "tmpfs", 0); err != nil { // its files go with it
		return 0, err
	}
	cmd := again(stageInside, 0)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stdout, os.Stderr
	if err := cmd.Start(); err != nil {
		return 0, err
	}
	return reap(cmd.Process.Pid)
}

// reap waits for orphans until the child has ended, and returns its exit status.
func reap(child int) (int, error) {
	for {
		var status syscall.WaitStatus
		pid, err := syscall.Wait4(-1, &status, 0, nil)
		switch {
		case errors.Is(err, syscall.EINTR):
		case err != nil:
			return 0, fmt.Errorf("waiting for processes: %w", err)
		case pid == child && status.Signaled():
			return 0, fmt.Errorf("the tests were ended by %s", status.Signal())
		case pid == child:
			return status.ExitStatus(), nil
		}
	}
}

// privateMounts keeps the machine's mounts out of what is mounted from now on, and shows
// the processes and the network of these namespaces.
func privateMounts() error {
	if err := mount("", "/", "", syscall.MS_REC|syscall.MS_PRIVATE); err != nil {
		return err
	}
	if err := mount("proc", "/proc", "proc", 0); err != nil {
		return err
	}
	return mount("sysfs", "/sys", "sysfs", 0)
}

func mount(source, target, kind string, flags uintptr) error {
	if err := syscall.Mount(source, target, kind, flags, ""); err != nil {
		return fmt.Errorf("mounting %s%s on %s: %w", kind, source, target, err)
	}
	return nil
}
