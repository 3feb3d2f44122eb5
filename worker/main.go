// Command worker is the fleet's one service: it runs workflows and activities, and
// serves the API, each where its role says so. It is the composition root and may
// import everything. Start reading at Run.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"github.com/egressfleet/egressfleet/providers/local"
)

// Exit codes.
const (
	exitOK      = 0
	exitFailure = 1
	exitUsage   = 2 // a flag, a setting or a file is wrong; starting again does not help
)

func main() {
	if len(os.Args) > 1 && os.Args[1] == local.Command {
		os.Exit(local.Main(os.Args[2:])) // an instance of the local provider, not a worker
	}
	boundHeap()
	os.Exit(realMain(os.Args[1:]))
}

// realMain returns the exit code, so that deferred calls run before the end.
func realMain(args []string) int {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	context.AfterFunc(ctx, stop) // a second signal ends the process at once
	cmd := NewCommand(Run)
	cmd.SetArgs(args)
	return ExitCode(os.Stderr, cmd.ExecuteContext(ctx))
}

// usageError is a fault of the command line or the configuration.
type usageError struct{ error }

func (e usageError) Unwrap() error { return e.error }

// ExitCode prints an error and returns the exit code for it.
func ExitCode(w interface{ Write([]byte) (int, error) }, err error) int {
	if err == nil {
		return exitOK
	}
	_, _ = fmt.Fprintf(w, "worker: %v\n", err)
	if _, usage := errors.AsType[usageError](err); usage {
		return exitUsage
	}
	return exitFailure
}
