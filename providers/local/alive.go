package local

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
)

// The lines of an alive file. The pid is written by the parent and by the process,
// for either may be killed before it comes to that.
const (
	pidWord   = "pid "
	readyLine = "ready"
)

// lockAlive opens and locks the alive file before the process exists, and empties
// it of what an earlier process wrote.
func (s system) lockAlive(ctx context.Context, folder string) (*os.File, error) {
	path := filepath.Join(folder, aliveFile)
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE|os.O_APPEND, fileMode) //nolint:gosec // the name is a label
	if err != nil {
		return nil, err
	}
	// Somebody who looks holds it for an instant; longer means a process that lives.
	ctx, cancel := context.WithTimeoutCause(ctx, s.endWait, errors.New(path+" is held by another process"))
	defer cancel()
	err = poll(ctx, func() (bool, error) { return tryFlock(f, syscall.LOCK_EX) })
	if err == nil {
		err = f.Truncate(0)
	}
	if err != nil {
		_ = f.Close()
		return nil, err
	}
	return f, nil
}

// look reads the file first and tries the lock second: a process writes while it
// holds the lock, so "ready, and free" can only mean that it served and ended.
func (system) look(folder string) (vital, error) {
	f, err := os.Open(filepath.Join(folder, aliveFile)) //nolint:gosec // the name is a label
	if missing(err) {
		return vital{}, nil
	}
	if err != nil {
		return vital{}, err
	}
	defer func() { _ = f.Close() }()
	v, err := readVital(f)
	if err != nil {
		return vital{}, err
	}
	// Shared, so that two that look at once do not take each other for a process.
	free, err := tryFlock(f, syscall.LOCK_SH)
	if free {
		_ = syscall.Flock(int(f.Fd()), syscall.LOCK_UN)
	}
	v.alive = !free
	return v, err
}

func writePID(alive *os.File, pid int) error {
	_, err := fmt.Fprintf(alive, "%s%d\n", pidWord, pid)
	return err
}

// readVital reads what was written about a process. A line that is not whole yet
// counts as not there.
func readVital(f *os.File) (vital, error) {
	const most = 256 // bytes: three short lines
	data, err := io.ReadAll(io.LimitReader(f, most))
	if err != nil {
		return vital{}, err
	}
	var v vital
	for line := range strings.Lines(string(data)) {
		line, whole := strings.CutSuffix(line, "\n")
		if !whole {
			break
		}
		if line == readyLine {
			v.ready = true
		}
		word, isPID := strings.CutPrefix(line, pidWord)
		if pid, err := strconv.Atoi(word); isPID && err == nil && pid > 1 { // never a group, nor the first process
			v.pid = pid
		}
	}
	return v, nil
}
