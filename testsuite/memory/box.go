//go:build linux

package main

import (
	"debug/elf"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// The user of the image.
const nobody = 65532

// box is what a container engine would make: a root with the worker and its
// configuration, and a control group.
type box struct {
	root, group, log string
	program          int64 // bytes of the binary
	cmd              *exec.Cmd
	ended            chan struct{}
}

// newBox makes the root and the group, and says what is missing for them.
func newBox(dir, worker string) (*box, error) {
	if os.Getuid() != 0 {
		return nil, errors.New("mounts and control groups need root")
	}
	if err := static(worker); err != nil {
		return nil, err
	}
	b := &box{root: filepath.Join(dir, "root"), log: filepath.Join(dir, "worker.log"), ended: make(chan struct{})}
	for _, below := range []string{"etc", "tmp", "proc", "sys/fs/cgroup"} {
		err := os.MkdirAll(filepath.Join(b.root, below), 0o755) //nolint:gosec // for everybody, as in an image
		if err != nil {
			return nil, err
		}
	}
	binary, err := os.ReadFile(worker) //nolint:gosec // ours
	if err != nil {
		return nil, err
	}
	b.program = int64(len(binary))
	if err := errors.Join(b.put("worker", binary, 0o755), forget(filepath.Join(b.root, "worker"))); err != nil {
		return nil, err
	}
	if err := os.Chmod(dir, 0o755); err != nil { //nolint:gosec // the user of the image has to get in
		return nil, err
	}
	return b, b.makeGroup()
}

// static returns an error for a program that needs a loader, which the image does not have.
func static(program string) error {
	f, err := elf.Open(program)
	if err != nil {
		return err
	}
	defer func() { _ = f.Close() }()
	for _, p := range f.Progs {
		if p.Type == elf.PT_INTERP {
			return fmt.Errorf("%s is not static: build it with CGO_ENABLED=0", program)
		}
	}
	return nil
}

// forget takes a file out of the page cache. Its pages are then counted where they are
// read again, as those of an image are: in the control group of the worker, and not in ours.
func forget(path string) error {
	f, err := os.Open(path) //nolint:gosec // ours
	if err != nil {
		return err
	}
	return errors.Join(f.Sync(), unix.Fadvise(int(f.Fd()), 0, 0, unix.FADV_DONTNEED), f.Close())
}

func (b *box) put(name string, text []byte, mode fs.FileMode) error {
	return os.WriteFile(filepath.Join(b.root, name), text, mode) //nolint:gosec // the names are ours
}

// makeGroup makes a control group with the limit, of whichever version there is.
func (b *box) makeGroup() error {
	name := "egressfleet-memory-" + strconv.Itoa(os.Getpid())
	v1, v2 := "/sys/fs/cgroup/memory", "/sys/fs/cgroup"
	file, parent := "memory.limit_in_bytes", v1
	if _, err := os.Stat(filepath.Join(v1, file)); err != nil {
		file, parent = "memory.max", v2
		// Where it is on already, or processes are in the root, the limit says what is so.
		_ = os.WriteFile(filepath.Join(v2, "cgroup.subtree_control"), []byte("+memory"), 0o600)
	}
	b.group = filepath.Join(parent, name)
	if err := os.Mkdir(b.group, 0o755); err != nil { //nolint:gosec // as others there are
		return fmt.Errorf("no control group can be made: %w", err)
	}
	if err := os.WriteFile(filepath.Join(b.group, file), []byte(strconv.Itoa(limit)), 0o600); err != nil {
		return errors.Join(fmt.Errorf("the memory of a control group cannot be limited: %w", err), os.Remove(b.group))
	}
	for _, swap := range []string{"memory.memsw.limit_in_bytes", "memory.swap.max"} {
		value := map[bool]string{true: strconv.Itoa(limit), false: "0"}[strings.Contains(swap, "memsw")]
		_ = os.WriteFile(filepath.Join(b.group, swap), []byte(value), 0o600) // a machine without swap has neither
	}
	return nil
}

// run starts the worker in the box.
func (b *box) run(args ...string) error {
	self, err := os.Executable()
	if err != nil {
		return err
	}
	out, err := os.Create(b.log)
	if err != nil {
		return err
	}
	defer func() { _ = out.Close() }()
	inside := append([]string{contained, b.root, b.group}, args...)
	b.cmd = exec.Command(self, inside...) //nolint:gosec,noctx // ended by end
	b.cmd.Stdout, b.cmd.Stderr, b.cmd.Env = out, out, []string{}
	b.cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWNS, Pdeathsig: syscall.SIGKILL}
	if err := b.cmd.Start(); err != nil {
		return fmt.Errorf("no mount namespace can be made: %w", err)
	}
	go func() {
		defer close(b.ended)
		_ = b.cmd.Wait()
	}()
	return nil
}

// alive returns an error once the worker has ended.
func (b *box) alive() error {
	select {
	case <-b.ended:
		text, _ := os.ReadFile(b.log)
		tail := text[max(0, len(text)-2000):]
		return fmt.Errorf("the worker has ended (%s); its last words:\n%s", b.cmd.ProcessState, tail)
	default:
		return nil
	}
}

func (b *box) end() {
	_ = b.cmd.Process.Signal(syscall.SIGTERM)
	select {
	case <-b.ended:
	case <-time.After(time.Minute):
		_ = b.cmd.Process.Kill()
		<-b.ended
	}
}

// remove removes the group; the mounts went with their namespace.
func (b *box) remove() error { return os.Remove(b.group) }

// proc reads a file of the worker's process.
func (b *box) proc(name string) (string, error) {
	path := filepath.Join("/proc", strconv.Itoa(b.cmd.Process.Pid), name)
	text, err := os.ReadFile(path) //nolint:gosec // the names are ours
	return string(text), err
}
