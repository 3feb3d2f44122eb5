// Command licences says under which licence each module is that a published binary
// holds: `go run ./tools/licences` writes docs/licences.md, and `-texts FILE` what has
// to go with the binaries. It refuses a licence that is not in the list of those that
// we can meet, and a module without one. Start reading at survey.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"
)

const (
	page = "docs/licences.md"
	mode = 0o644
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	texts := flag.String("texts", "", "write the texts of all licences to this file, and not the page")
	flag.Parse()
	if err := run(ctx, *texts); err != nil {
		fmt.Fprintln(os.Stderr, "tools/licences:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, texts string) error {
	root, err := moduleRoot(ctx)
	if err != nil {
		return err
	}
	found, err := survey(ctx, root)
	if err != nil {
		return err
	}
	if texts != "" {
		return os.WriteFile(texts, []byte(textOf(found)), mode)
	}
	return os.WriteFile(filepath.Join(root, page), []byte(pageOf(found)), mode)
}
