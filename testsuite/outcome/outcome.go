// Package outcome is the frame of the commands that play a life and judge it: make
// chaos, chaos-fleet and chaos-gcp. It imports nothing of ours.
package outcome

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"
)

// Main plays a life until it ends or somebody interrupts it, and ends the process: with 1
// where play fails, or says that what was left is not clean. play prints the outcome as
// its last line. name stands before an error.
func Main(name string, play func(context.Context, io.Writer) (clean bool, err error)) {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	code := codeOf(ctx, name, play, os.Stdout, os.Stderr)
	stop()
	os.Exit(code)
}

func codeOf(
	ctx context.Context, name string, play func(context.Context, io.Writer) (bool, error), out, errs io.Writer,
) int {
	clean, err := play(ctx, out)
	if err != nil {
		_, _ = fmt.Fprintf(errs, "%s: %v\n", name, err)
	}
	if err != nil || !clean {
		return 1
	}
	return 0
}
