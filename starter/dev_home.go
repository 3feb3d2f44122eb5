package main

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/egressfleet/egressfleet/internal/config"
)

// What a dev directory holds. Nothing else in it is ever touched.
const (
	lockFile      = "egressfleet-dev.lock" // also what tells our directory from another
	databaseFile  = "temporal.db"
	workerFile    = "worker.yaml"
	providersFile = "providers.yaml"
	logDir        = "log"
	instancesDir  = "instances"

	besideLog = "backend.log" // below logDir
)

const (
	homeMode = 0o700
	fileMode = 0o600
)

// devHome is the directory of a run, held by a lock that ends with the process.
type devHome struct {
	dir  string
	lock *os.File
}

func (h *devHome) path(parts ...string) string {
	return filepath.Join(append([]string{h.dir}, parts...)...)
}

// openHome makes the directory where there is none, and locks it.
func openHome(dir string) (*devHome, error) {
	if err := refuseForeign(dir); err != nil {
		return nil, err
	}
	if err := os.MkdirAll(dir, homeMode); err != nil {
		return nil, fmt.Errorf("%s: %w", config.EnvDevDir, err)
	}
	return lockHome(dir)
}

// lockHome takes the lock of a directory that is ours.
func lockHome(dir string) (*devHome, error) {
	path := filepath.Join(dir, lockFile)
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, fileMode) //nolint:gosec // the operator names the directory
	if err != nil {
		return nil, fmt.Errorf("%s: %w", config.EnvDevDir, err)
	}
	h := &devHome{dir: dir, lock: f}
	err = syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
	switch {
	case errors.Is(err, syscall.EWOULDBLOCK):
		err = fmt.Errorf("%s: %q is in use by another \"starter dev\": %s; stop it first",
			config.EnvDevDir, dir, holder(f))
	case err == nil && !sameFile(f, path): // another run removed it while this one opened it
		err = fmt.Errorf("%s: %q is being removed by another \"starter dev clean\"", config.EnvDevDir, dir)
	case err == nil: // the database below holds what proxies were given
		err = errors.Join(os.Chmod(dir, homeMode), h.sign())
	}
	if err != nil {
		h.close()
		return nil, err
	}
	return h, nil
}

// close ends the lock.
func (h *devHome) close() { _ = h.lock.Close() }

// sign writes who holds the lock, for whoever comes second.
func (h *devHome) sign() error {
	text := fmt.Sprintf("process %d, since %s\n", os.Getpid(), time.Now().Format(time.DateTime))
	if err := h.lock.Truncate(0); err != nil {
		return err
	}
	_, err := h.lock.WriteAt([]byte(text), 0)
	return err
}

func holder(f *os.File) string {
	const most = 200 // bytes: more than sign writes
	text, _ := io.ReadAll(io.NewSectionReader(f, 0, most))
	if len(text) == 0 {
		return "it has just begun"
	}
	return strings.TrimSpace(string(text))
}

func sameFile(f *os.File, path string) bool {
	mine, err := f.Stat()
	if err != nil {
		return false
	}
	there, err := os.Stat(path)
	return err == nil && os.SameFile(mine, there)
}

// refuseForeign returns an error about a directory that holds files and is not
// ours. One that is missing or empty is nobody's.
func refuseForeign(dir string) error {
	entries, err := os.ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("%s: %w", config.EnvDevDir, err)
	}
	ours := slices.ContainsFunc(entries, func(e fs.DirEntry) bool { return e.Name() == lockFile && e.Type().IsRegular() })
	if ours || len(entries) == 0 {
		return nil
	}
	return fmt.Errorf("%s: %q holds files and was not made by \"starter dev\"; move it away, or name another with %s",
		config.EnvDevDir, dir, config.EnvDevDir)
}

// remove takes away what runs have made, and the directory when nothing else is in
// it; left says that something is. The lock file goes last: until then the directory
// is recognised and locked.
func (h *devHome) remove() (left bool, _ error) {
	if err := h.removeDatabase(); err != nil {
		return true, err
	}
	for _, name := range []string{workerFile, providersFile, logDir, instancesDir, lockFile} {
		if err := os.RemoveAll(h.path(name)); err != nil {
			return true, err
		}
	}
	err := os.Remove(h.dir)
	if errors.Is(err, syscall.ENOTEMPTY) || errors.Is(err, syscall.EEXIST) {
		return true, nil // somebody else's files, or a run that has just begun
	}
	return false, err
}

// removeDatabase takes away what the server knows. It is not running.
func (h *devHome) removeDatabase() error {
	for _, name := range []string{databaseFile, databaseFile + "-wal", databaseFile + "-shm"} {
		if err := os.RemoveAll(h.path(name)); err != nil {
			return err
		}
	}
	return nil
}
