// Command kvmlab prepares what `make test-integration-kvm` needs: `check` says what is
// missing on this machine, `images` makes the guests' images, once per user.
package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"github.com/egressfleet/egressfleet/testsuite/kvmlab"
	"github.com/egressfleet/egressfleet/testsuite/kvmlab/image"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "kvmlab:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string) error {
	if len(args) == 1 && args[0] == "check" {
		return kvmlab.CheckNeeds()
	}
	if len(args) == 1 && args[0] == "images" {
		return images(ctx)
	}
	return fmt.Errorf("%q is neither check nor images", args)
}

func images(ctx context.Context) error {
	cache, err := image.Cache()
	if err != nil {
		return err
	}
	for _, i := range image.All() {
		if _, err := i.Make(ctx, cache, os.Stderr); err != nil {
			return err
		}
	}
	return nil
}
