package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"sync/atomic"
	"syscall"
	"time"
)

const (
	// workerGrace is more than the minute that a worker gives its last activities.
	workerGrace = 70 * time.Second
	serverGrace = 20 * time.Second
	// tailBytes of a log are shown when its process has died.
	tailBytes = 2000
)

// program is what to start.
type program struct {
	name string // for people
	path string
	args []string
	env  []string
	log  string // file for both outputs; that of the run before is kept as .1
}

// child is a process that was started here. Only these are ever stopped.
type child struct {
	program
	cmd      *exec.Cmd
	stopping atomic.Bool
	ended    chan struct{} // closed once the process is gone and reaped
}

// deadError is the cause of a run's end when a child ends by itself.
type deadError struct{ name, how, log, tail string }

// Error shows the end of the log.
func (e *deadError) Error() string {
	return fmt.Sprintf("%s has died (%s); the end of %s:\n%s", e.name, e.how, e.log, e.tail)
}

// start runs a program in a process group of its own, so that a Ctrl-C in the
// terminal reaches only us. When it ends without stop, died gets a *deadError.
func start(p program, died context.CancelCauseFunc) (*child, error) {
	log, err := freshLog(p.log)
	if err != nil {
		return nil, err
	}
	defer func() { _ = log.Close() }() // the process has a copy
	c := &child{program: p, ended: make(chan struct{})}
	c.cmd = exec.Command(p.path, p.args...) //nolint:gosec,noctx // beside this program; stop ends it
	c.cmd.Env, c.cmd.Stdout, c.cmd.Stderr = p.env, log, log
	c.cmd.SysProcAttr = ownGroup()
	started := make(chan error, 1)
	go c.live(started, died)
	if err := <-started; err != nil {
		return nil, fmt.Errorf("%s: %w", p.name, err)
	}
	return c, nil
}

// live starts the process and waits for its end, on one thread: on Linux the kernel
// tells a child of the death of the thread that made it, not of the process.
func (c *child) live(started chan<- error, died context.CancelCauseFunc) {
	defer close(c.ended)
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	err := c.cmd.Start()
	started <- err
	if err != nil {
		return
	}
	_ = c.cmd.Wait() // how it ended is in ProcessState
	if !c.stopping.Load() {
		died(&deadError{name: c.name, how: c.cmd.ProcessState.String(), log: c.log, tail: tail(c.log)})
	}
}

// gone reports whether the process has ended.
func (c *child) gone() bool {
	select {
	case <-c.ended:
		return true
	default:
		return false
	}
}

// stop asks the process to end, and kills it after grace or when hurry ends. It
// returns when the process is gone.
func (c *child) stop(hurry context.Context, grace time.Duration) {
	c.stopping.Store(true)
	_ = c.cmd.Process.Signal(syscall.SIGTERM) // an error means that it is gone already
	patience := time.NewTimer(grace)
	defer patience.Stop()
	select {
	case <-c.ended:
		return
	case <-patience.C:
	case <-hurry.Done():
	}
	_ = c.cmd.Process.Kill()
	<-c.ended
}

// freshLog opens an empty log, and keeps the last run's beside it.
func freshLog(path string) (*os.File, error) {
	if err := os.Rename(path, path+".1"); err != nil && !errors.Is(err, os.ErrNotExist) {
		return nil, err
	}
	return os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_TRUNC|os.O_APPEND, fileMode) //nolint:gosec // our own file
}

// tail returns the end of a log, indented.
func tail(path string) string {
	f, err := os.Open(path) //nolint:gosec // our own file
	if err != nil {
		return "  (" + err.Error() + ")"
	}
	defer func() { _ = f.Close() }()
	info, err := f.Stat()
	if err != nil {
		return "  (" + err.Error() + ")"
	}
	from := max(info.Size()-tailBytes, 0)
	text, _ := io.ReadAll(io.NewSectionReader(f, from, tailBytes))
	if from > 0 { // the first line is cut
		_, rest, _ := strings.Cut(string(text), "\n")
		text = []byte(rest)
	}
	if len(text) == 0 {
		return "  (it is empty)"
	}
	return "  " + strings.ReplaceAll(strings.TrimSpace(string(text)), "\n", "\n  ")
}
