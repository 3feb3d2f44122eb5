// Package ports hands out ports to processes that are started by suites and listen
// later. Start reading at Take.
package ports

import (
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"syscall"
)

// Ports below the range from which Linux (32768) and macOS (49152) take those of
// outgoing connections: one of these could get a free port before its listener does.
const lowest, highest = 20000, 31999

// attempts bounds the search: so many are not in use at once.
const attempts = 1000

var (
	mu   sync.Mutex
	kept []*os.File // each locks a port until this process ends
)

// Take returns a port on which nothing listens, and that no other caller on this
// machine is given while this process lives.
func Take() (int, error) {
	dir := filepath.Join(os.TempDir(), "egressfleet-ports-"+strconv.Itoa(os.Getuid()))
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return 0, err
	}
	for range attempts {
		port := lowest + rand.IntN(highest-lowest+1) //nolint:gosec // any will do
		if ok, err := lock(dir, port); err != nil {
			return 0, err
		} else if ok && free(port) {
			return port, nil
		}
	}
	return 0, fmt.Errorf("no port from %d to %d is free", lowest, highest)
}

// lock reserves a port among those who ask here, and reports whether nobody had.
func lock(dir string, port int) (bool, error) {
	name := filepath.Join(dir, strconv.Itoa(port))
	f, err := os.OpenFile(name, os.O_CREATE|os.O_RDWR, 0o600) //nolint:gosec // a name of ours
	if err != nil {
		return false, err
	}
	err = syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
	if err != nil {
		_ = f.Close()
	}
	if errors.Is(err, syscall.EWOULDBLOCK) {
		return false, nil
	}
	if err != nil {
		return false, &fs.PathError{Op: "lock", Path: f.Name(), Err: err}
	}
	mu.Lock()
	defer mu.Unlock()
	kept = append(kept, f)
	return true, nil
}

// free reports whether a port can be listened on, on every address.
func free(port int) bool {
	l, err := net.Listen("tcp", ":"+strconv.Itoa(port)) //nolint:noctx // closed at once
	if err != nil {
		return false
	}
	return l.Close() == nil
}
