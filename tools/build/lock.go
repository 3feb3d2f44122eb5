package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"syscall"
	"time"
)

// lookEvery is how often a lock that somebody holds is tried again.
const lookEvery = 200 * time.Millisecond

// lock waits for the only right to build what a file is named after, among all processes
// of this machine; waits is called once if somebody has it. The kernel ends it with the
// process, so that a build that was killed keeps nobody waiting. The file stays: removed,
// it could be locked by two.
func lock(ctx context.Context, path string, waits func()) (unlock func() error, err error) {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o600) //nolint:gosec // in the cache
	if err != nil {
		return nil, err
	}
	for {
		err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
		if err == nil {
			return f.Close, nil
		}
		if !errors.Is(err, syscall.EWOULDBLOCK) && !errors.Is(err, syscall.EINTR) {
			return nil, errors.Join(fmt.Errorf("locking %s: %w", path, err), f.Close())
		}
		if waits != nil {
			waits()
			waits = nil
		}
		select {
		case <-ctx.Done():
			return nil, errors.Join(fmt.Errorf("waiting for %s: %w", path, context.Cause(ctx)), f.Close())
		case <-time.After(lookEvery):
		}
	}
}
