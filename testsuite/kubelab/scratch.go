//go:build linux

package kubelab

import (
	"errors"
	"os"
	"path/filepath"
	"syscall"
)

// newScratch makes a folder for the files of a run, and removes those of runs that were
// killed: the kernel ends what they started, and nobody removes what they wrote, which are
// whole file systems. Whoever uses a folder holds a lock on it. done removes this one.
func newScratch(base string) (dir string, done func() error, err error) {
	if err := os.MkdirAll(base, 0o700); err != nil {
		return "", nil, err
	}
	err = locked(filepath.Join(base, "lock"), func() error {
		old, err := filepath.Glob(filepath.Join(base, "run-*"))
		for _, dir := range old {
			err = errors.Join(err, forgetScratch(dir))
		}
		if err != nil {
			return err
		}
		if dir, err = os.MkdirTemp(base, "run-"); err != nil {
			return err
		}
		held, err := hold(dir)
		done = func() error { return errors.Join(os.RemoveAll(dir), held.Close()) }
		return err
	})
	return dir, done, err
}

// forgetScratch removes a folder that nobody holds.
func forgetScratch(dir string) error {
	held, err := hold(dir)
	if errors.Is(err, syscall.EWOULDBLOCK) {
		return nil
	}
	if err != nil {
		return err
	}
	return errors.Join(os.RemoveAll(dir), held.Close())
}

// hold locks a folder until it is closed, or this process ends.
func hold(dir string) (*os.File, error) {
	f, err := os.Open(dir) //nolint:gosec // a folder of ours
	if err != nil {
		return nil, err
	}
	if err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
}
