package local

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"
)

// The descriptors that a proxy process is born with, after stdin, stdout and stderr.
const (
	listenerFD = 3 + iota // bound by the parent, so that no connection is ever refused
	aliveFD               // the alive file, locked by the parent: no gap, no other holder
	readyFD               // one byte is written when it serves
)

// system is the machine as it is.
type system struct {
	executable string
	readyWait  time.Duration // for a process to serve
	endWait    time.Duration // for a process to end, after each kind of signal
}

func newSystem(executable string) system {
	return system{executable: executable, readyWait: 10 * time.Second, endWait: 5 * time.Second}
}

func (system) listen(ctx context.Context, at netip.AddrPort) (*os.File, error) {
	var cfg net.ListenConfig
	cfg.SetMultipathTCP(false) // a plain socket is understood by every process that gets it
	l, err := cfg.Listen(ctx, "tcp4", at.String())
	if err != nil {
		return nil, err
	}
	defer func() { _ = l.Close() }() // the file is a copy, and keeps the socket listening
	tcp, ok := l.(*net.TCPListener)
	if !ok {
		return nil, fmt.Errorf("listener is a %T", l)
	}
	return tcp.File()
}

// start needs the folder's lock to be held by the caller.
func (s system) start(ctx context.Context, folder string, listener *os.File) error {
	alive, err := s.lockAlive(ctx, folder)
	if err != nil {
		return err
	}
	// The process holds the lock as well; the parent's hold must end, or it would hide
	// the process's death.
	defer func() { _ = alive.Close() }()
	lives, err := s.spawn(ctx, folder, listener, alive)
	if !lives {
		// Closing is not enough: another process that is being started right now may
		// hold a copy of the descriptor until it executes.
		_ = syscall.Flock(int(alive.Fd()), syscall.LOCK_UN)
	}
	return err
}

// spawn also reports whether there may be a process, be it one that failed.
func (s system) spawn(ctx context.Context, folder string, listener, alive *os.File) (lives bool, err error) {
	log, err := openLog(folder)
	if err != nil {
		return false, err
	}
	defer func() { _ = log.Close() }()
	ready, readyEnd, err := os.Pipe()
	if err != nil {
		return false, err
	}
	defer func() { _ = ready.Close() }()
	cmd := s.command(folder, log, listener, alive, readyEnd)
	err = cmd.Start()
	_ = readyEnd.Close() // so that the process's death closes the pipe
	if err != nil {
		return false, startFailed(err)
	}
	if err := writePID(alive, cmd.Process.Pid); err != nil {
		_ = cmd.Process.Kill() // nobody could end it later
		return false, errors.Join(err, cmd.Wait())
	}
	return s.superviseStart(ctx, cmd, ready, folder)
}

// openLog empties the log of an earlier process.
func openLog(folder string) (*os.File, error) {
	const how = os.O_WRONLY | os.O_CREATE | os.O_TRUNC | os.O_APPEND
	return os.OpenFile(filepath.Join(folder, logFile), how, fileMode) //nolint:gosec // the name is a label
}

// passedOn are the variables that a process inherits: what the Go runtime itself
// reads. The rest of the worker's environment holds credentials and proxy settings.
var passedOn = []string{"GODEBUG", "GORACE", "GOCOVERDIR"}

func environment() []string {
	env := []string{} // not nil, which means all of it
	for _, key := range passedOn {
		if value, ok := os.LookupEnv(key); ok {
			env = append(env, key+"="+value)
		}
	}
	return env
}

// command describes the process: detached, at home nowhere, and told nothing but
// its folder.
func (s system) command(folder string, log *os.File, inherited ...*os.File) *exec.Cmd {
	cmd := exec.Command(s.executable, Command, "--dir", folder) //nolint:gosec,noctx // configured; outlives ctx
	cmd.Dir = "/"
	cmd.Env = environment()
	cmd.Stdout, cmd.Stderr = log, log
	cmd.ExtraFiles = inherited
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	return cmd
}

// startFailed keeps a program that is there and cannot be run from being tried
// forever. One that is not there may be in the middle of an upgrade.
func startFailed(err error) error {
	if errors.Is(err, syscall.EACCES) || errors.Is(err, syscall.EPERM) {
		return permanent("executable: %w", err)
	}
	return fmt.Errorf("executable: %w", err)
}

// superviseStart waits for the ready byte. A process that is not ready in time is
// killed; one whose Create was called off is left alone, for the next Create.
func (s system) superviseStart(
	ctx context.Context, cmd *exec.Cmd, ready *os.File, folder string,
) (lives bool, err error) {
	ended := make(chan struct{})
	go func() { // reaps it, or it would stay a zombie as long as the worker lives
		defer close(ended)
		_ = cmd.Wait()
	}()
	limit, cancel := context.WithTimeoutCause(ctx, s.readyWait, fmt.Errorf("not ready within %s", s.readyWait))
	defer cancel()
	stop := context.AfterFunc(limit, func() { _ = ready.SetReadDeadline(time.Unix(1, 0)) })
	defer stop()

	n, _ := ready.Read(make([]byte, 1))
	switch {
	case n == 1:
		return true, nil
	case ctx.Err() != nil:
		return true, context.Cause(ctx)
	}
	select { // the pipe closes without a byte when the process dies
	case <-ended:
	case <-limit.Done():
		_ = cmd.Process.Kill()
		<-ended
	}
	return false, transient("the proxy process did not start: %s: %s", endOf(limit, cmd), logTail(folder))
}

func endOf(limit context.Context, cmd *exec.Cmd) string {
	if limit.Err() != nil {
		return context.Cause(limit).Error()
	}
	return cmd.ProcessState.String()
}

// logTail returns the end of a process's log on one line. The process never learns
// a secret, so its log has none.
func logTail(folder string) string {
	const most = 500                                         // bytes: enough for a cause, short enough for a status
	data, err := os.ReadFile(filepath.Join(folder, logFile)) //nolint:gosec // the name is a label
	if err != nil || len(bytes.TrimSpace(data)) == 0 {
		return "its log is empty"
	}
	data = bytes.TrimSpace(data)
	return strings.Join(strings.Fields(string(data[max(0, len(data)-most):])), " ")
}
