// Command build puts pinned tools into bin/: `go run ./tools/build temporal`. Each
// tool is pinned by a go.mod of its own below tools/ and built once per user and
// version, into a cache; after that it prints nothing and takes no time. It imports
// only the standard library. Start reading at run; tool.go is the list of tools.
package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "tools/build:", err)
		os.Exit(1)
	}
}

// run puts the named tools into bin/ of the module around the working directory.
func run(ctx context.Context, names []string) error {
	wanted, err := find(names)
	if err != nil {
		return err
	}
	root, err := moduleRoot(ctx)
	if err != nil {
		return err
	}
	store := cacheDir(root)
	for _, t := range wanted {
		if err := provide(ctx, t, places{root: root, cache: store, say: os.Stderr}); err != nil {
			return fmt.Errorf("%s: %w", t.name, err)
		}
	}
	return nil
}

// places are the directories of one run, and where it says what it does.
type places struct {
	root, cache string
	say         io.Writer
}

// provide builds a tool unless the cache has it, and copies it into bin/.
func provide(ctx context.Context, t tool, at places) error {
	id, err := identity(ctx, t, at.root)
	if err != nil {
		return err
	}
	cached := filepath.Join(at.cache, t.name+"-"+id)
	if _, err := os.Stat(cached); err != nil {
		if err := build(ctx, t, at, cached); err != nil {
			return err
		}
	}
	return install(cached, filepath.Join(at.root, "bin", t.name))
}

// moduleRoot returns the directory of the go.mod around the working directory.
func moduleRoot(ctx context.Context) (string, error) {
	out, err := exec.CommandContext(ctx, "go", "env", "GOMOD").Output()
	if err != nil {
		return "", fmt.Errorf("go env GOMOD: %w", err)
	}
	mod := strings.TrimSpace(string(out))
	if filepath.Base(mod) != "go.mod" {
		return "", fmt.Errorf("no go.mod around the working directory: %q", mod)
	}
	return filepath.Dir(mod), nil
}

// cacheDir is the user's own, so that every clone shares it; without a home
// directory it is in bin/.
func cacheDir(root string) string {
	if dir, err := os.UserCacheDir(); err == nil {
		return filepath.Join(dir, "egressfleet", "tools")
	}
	return filepath.Join(root, "bin", ".cache")
}
