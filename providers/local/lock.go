package local

import (
	"context"
	"errors"
	"fmt"
	"os"
	"syscall"
	"time"
)

const (
	// lockWait bounds the wait for a lock: longer than the longest Create or Delete
	// that may hold it.
	lockWait = 40 * time.Second
	// The kernel cannot be asked to wait and to honour a context, so locks are polled.
	pollFirst = time.Millisecond
	pollMost  = 20 * time.Millisecond
)

// dirLock is an flock on a folder. It holds between processes and between
// goroutines alike, and leaves no file behind.
type dirLock struct{ dir *os.File }

// lockDir locks the folder at path. One that was removed while the lock was
// waited for is gone, not locked: the error says that it is missing.
func lockDir(ctx context.Context, path string) (*dirLock, error) {
	dir, err := os.Open(path) //nolint:gosec // below dir, and the name is a label
	if err != nil {
		return nil, err
	}
	l := &dirLock{dir}
	if err := flock(ctx, dir); err != nil {
		_ = dir.Close()
		return nil, fmt.Errorf("lock %s: %w", path, err)
	}
	if err := sameFile(dir, path); err != nil {
		l.release()
		return nil, err
	}
	return l, nil
}

func (l *dirLock) release() {
	// Explicit, for a process that is being started right now may hold a copy of
	// the descriptor until it executes.
	_ = syscall.Flock(int(l.dir.Fd()), syscall.LOCK_UN)
	_ = l.dir.Close()
}

// flock takes the exclusive lock of an open file.
func flock(ctx context.Context, f *os.File) error {
	ctx, cancel := context.WithTimeoutCause(ctx, lockWait, errors.New("still held by another process or call"))
	defer cancel()
	return poll(ctx, func() (bool, error) { return tryFlock(f, syscall.LOCK_EX) })
}

// tryFlock reports whether it got the lock.
func tryFlock(f *os.File, how int) (bool, error) {
	for {
		err := syscall.Flock(int(f.Fd()), how|syscall.LOCK_NB)
		switch {
		case err == nil:
			return true, nil
		case errors.Is(err, syscall.EWOULDBLOCK):
			return false, nil
		case !errors.Is(err, syscall.EINTR):
			return false, err
		}
	}
}

// sameFile tells whether an open file is still the one at path. The error of one
// that is not says that it is missing.
func sameFile(f *os.File, path string) error {
	open, err := f.Stat()
	if err != nil {
		return err
	}
	there, err := os.Stat(path)
	if err != nil {
		return err
	}
	if !os.SameFile(open, there) {
		return &os.PathError{Op: "stat", Path: path, Err: os.ErrNotExist}
	}
	return nil
}

// poll asks until the answer is yes, an error, or ctx ends.
func poll(ctx context.Context, ask func() (bool, error)) error {
	for wait := pollFirst; ; wait = min(2*wait, pollMost) {
		done, err := ask()
		if done || err != nil {
			return err
		}
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-time.After(wait):
		}
	}
}
