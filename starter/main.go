// Command starter is the operator's command line: it starts, asks and ends proxies,
// and runs the whole fleet on one machine for development. It may import everything;
// what it does to workflows goes through starter/fleet. Start reading at NewCommand;
// files called dev_… belong to the dev command.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"
	"time"
)

// Exit codes.
const (
	exitOK      = 0
	exitFailure = 1
	exitUsage   = 2
)

func main() { os.Exit(realMain()) }

// realMain returns the exit code, so that deferred calls run before the end.
func realMain() int {
	signals := []os.Signal{os.Interrupt, syscall.SIGTERM}
	if !signal.Ignored(syscall.SIGHUP) { // as it is under nohup
		signals = append(signals, syscall.SIGHUP)
	}
	ctx, stop := signal.NotifyContext(context.Background(), signals...)
	defer stop()
	cmd := NewCommand(Streams{In: os.Stdin, Out: os.Stdout, Err: os.Stderr}, Outside{Connect: connect, Now: time.Now})
	return ExitCode(os.Stderr, cmd.ExecuteContext(ctx))
}

// usageError is a fault of the command line itself.
type usageError struct{ error }

func (e usageError) Unwrap() error { return e.error }

func usagef(format string, args ...any) error { return usageError{fmt.Errorf(format, args...)} }

// ExitCode prints an error, one line for each that is joined in it, and returns the
// exit code for it.
func ExitCode(w io.Writer, err error) int {
	if err == nil {
		return exitOK
	}
	_, _ = fmt.Fprintf(w, "starter: %v\n", err)
	if _, usage := errors.AsType[usageError](err); usage {
		return exitUsage
	}
	return exitFailure
}
