package local

import (
	"context"
	"errors"
	"fmt"
	"os"
	"syscall"
	"time"
)

// awaitReady is for a process that a cut-off Create has left on its way.
func (s system) awaitReady(ctx context.Context, folder string) (bool, error) {
	v, err := s.await(ctx, folder, s.readyWait, func(v vital) bool { return v.ready || !v.alive })
	return v.ready && v.alive, err
}

// stop never signals by pid alone. The lock says that the process lives; the pid is
// its own word.
func (s system) stop(ctx context.Context, folder string) error {
	// One that was started a moment ago has not told its pid yet.
	v, err := s.await(ctx, folder, s.endWait, func(v vital) bool { return v.pid != 0 || !v.alive })
	if err != nil || !v.alive {
		return err
	}
	if v.pid == 0 {
		return transient("a process holds %s/%s and has not told its pid", folder, aliveFile)
	}
	process, err := os.FindProcess(v.pid)
	if err != nil {
		return err
	}
	defer func() { _ = process.Release() }()
	// The handle came first: as the lock is still held, that pid was the holder's all
	// the while, and so the handle is the holder.
	now, err := s.look(folder)
	if err != nil || !now.alive {
		return err
	}
	if now.pid != v.pid {
		return transient("%s/%s went from process %d to %d", folder, aliveFile, v.pid, now.pid)
	}
	for _, signal := range []os.Signal{syscall.SIGTERM, syscall.SIGKILL} {
		if gone, err := s.signal(ctx, folder, process, signal); gone || err != nil {
			return err
		}
	}
	return transient("process %d did not end within %s of SIGKILL", v.pid, s.endWait)
}

// signal asks a process to end and reports whether it did.
func (s system) signal(ctx context.Context, folder string, p *os.Process, signal os.Signal) (bool, error) {
	if err := p.Signal(signal); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return false, fmt.Errorf("%s to process %d: %w", signal, p.Pid, err)
	}
	v, err := s.await(ctx, folder, s.endWait, func(v vital) bool { return !v.alive })
	return !v.alive && err == nil, err
}

// await looks until the answer is good enough or the time is up, and returns what
// it saw last. Only the end of ctx and a failed look are errors.
func (s system) await(ctx context.Context, folder string, limit time.Duration, enough func(vital) bool) (vital, error) {
	var last vital
	bounded, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	err := poll(bounded, func() (bool, error) {
		var err error
		last, err = s.look(folder)
		return err == nil && enough(last), err
	})
	if errors.Is(err, context.DeadlineExceeded) && ctx.Err() == nil {
		err = nil
	}
	return last, err
}
