package local

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"os/signal"
	"path/filepath"
	"runtime"
	"strconv"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// Command is the first argument of a program that is started as an instance. The
// program's main must then call Main with the arguments after it, before anything
// else.
const Command = "local-instance"

const (
	// graceTime is for requests under way when the process is told to end; Delete
	// waits for it.
	graceTime = 2 * time.Second
	// disownedPoll is how often a process looks whether its folder is still its own.
	disownedPoll = 2 * time.Second
	// logLimit keeps a process that lives for months from filling the disk.
	logLimit = 64 << 10
)

// Main is the proxy process: it serves on the socket that it was born with, until
// it is told to end or its folder is removed. It returns the exit code.
func Main(args []string) int {
	flags := flag.NewFlagSet(Command, flag.ContinueOnError)
	folder := flags.String("dir", "", "folder of the instance")
	if err := flags.Parse(args); err != nil {
		return 2
	}
	closeStrangers()
	// A terminal that closes, or a reader that left, is no reason to end.
	signal.Ignore(syscall.SIGHUP, syscall.SIGPIPE)
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, syscall.SIGINT)
	defer stop()
	log := slog.New(slog.NewTextHandler(&cappedWriter{to: os.Stderr, left: logLimit}, nil))
	if err := runInstance(ctx, *folder, log); err != nil {
		log.Error("ended", slog.String("error", err.Error()))
		return 1
	}
	return 0
}

func runInstance(ctx context.Context, folder string, log *slog.Logger) error {
	alive, listener, err := inherit(folder)
	if err != nil {
		return fmt.Errorf("%s is started by the provider, not by hand: %w", Command, err)
	}
	// Not even by the garbage collector: the lock on it is this process's life.
	defer runtime.KeepAlive(alive)
	if err := writePID(alive, os.Getpid()); err != nil {
		return err
	}
	server := newProxyServer(listener.Addr(), idleLimit, log)
	served := make(chan error, 1)
	go func() { served <- server.serve(listener) }()
	if err := tellReady(alive); err != nil {
		return err
	}
	log.Info("serving", slog.String("endpoint", listener.Addr().String()))
	disowned := make(chan error, 1)
	go func() { disowned <- watchFolder(ctx, alive, filepath.Join(folder, aliveFile)) }()
	select {
	case <-ctx.Done():
		log.Info("told to end")
	case err = <-disowned:
	case err = <-served:
	}
	server.end(context.WithoutCancel(ctx), graceTime)
	return err
}

// inherit takes over what the parent opened, and refuses anything else that has
// these numbers.
func inherit(folder string) (alive *os.File, listener net.Listener, err error) {
	alive = os.NewFile(aliveFD, aliveFile)
	if alive == nil {
		return nil, nil, errors.New("no alive file")
	}
	if err := sameFile(alive, filepath.Join(folder, aliveFile)); err != nil {
		return nil, nil, err
	}
	socket := os.NewFile(listenerFD, "listener")
	defer func() { _ = socket.Close() }() // the listener is a copy
	listener, err = net.FileListener(socket)
	return alive, listener, err
}

// closeStrangers closes the descriptors that the worker had inherited and passed on
// without knowing: a shell that waits for the end of its pipe would wait for this
// process, too. What Go opens by itself is marked to be closed by exec; they are not.
func closeStrangers() {
	entries, _ := os.ReadDir("/dev/fd") // without it they stay open: a nuisance, and no more
	for _, e := range entries {
		fd, err := strconv.Atoi(e.Name())
		if err != nil || fd <= readyFD {
			continue
		}
		if flags, err := unix.FcntlInt(uintptr(fd), unix.F_GETFD, 0); err == nil && flags&unix.FD_CLOEXEC == 0 {
			_ = unix.Close(fd)
		}
	}
}

// tellReady writes it where everybody can read it, then to the parent, which may
// be gone: then nobody reads, and that is no fault.
func tellReady(alive *os.File) error {
	if _, err := alive.WriteString(readyLine + "\n"); err != nil {
		return err
	}
	ready := os.NewFile(readyFD, "ready")
	_, _ = ready.Write([]byte{1})
	return ready.Close()
}

// watchFolder returns when the alive file is no longer the one at its path: then
// nobody could ever find this process again. Twice in a row, for a disk that is
// being remounted.
func watchFolder(ctx context.Context, alive *os.File, path string) error {
	ticker := time.NewTicker(disownedPoll)
	defer ticker.Stop()
	for misses := 0; misses < 2; {
		select {
		case <-ctx.Done():
			return nil
		case <-ticker.C:
		}
		if err := sameFile(alive, path); missing(err) {
			misses++
		} else {
			misses = 0
		}
	}
	return errors.New("its folder was removed")
}

// cappedWriter drops what comes after its limit.
type cappedWriter struct {
	to   io.Writer
	left int
}

// Write is called by one slog handler only, which serialises it.
func (w *cappedWriter) Write(p []byte) (int, error) {
	if len(p) > w.left {
		w.left = 0
		return len(p), nil
	}
	w.left -= len(p)
	return w.to.Write(p)
}
