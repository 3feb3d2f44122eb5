// Command release makes what is published: `go run ./tools/release dist` builds the
// binaries of every platform with their SBOMs and checksums, `check` builds them twice
// and compares the bytes, `notes` prints a version's part of the changelog. It imports
// only the standard library. Start reading at run; build.go says how a binary is made.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, os.Args[1:], os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "tools/release:", err)
		os.Exit(1)
	}
}

const usage = "say what: dist [-out dist] [-version v1.2.3], check, or notes v1.2.3"

// run carries out one command.
func run(ctx context.Context, args []string, out io.Writer) error {
	if len(args) == 0 {
		return errors.New(usage)
	}
	root, err := moduleRoot(ctx)
	if err != nil {
		return err
	}
	flags := flag.NewFlagSet(args[0], flag.ContinueOnError)
	to := flags.String("out", "dist", "an empty folder, or none")
	version := flags.String("version", "", "what the binaries say of themselves; git describe where it is not given")
	on := flags.String("platforms", "", "such as linux-amd64,darwin-arm64; all where it is not given")
	if err := flags.Parse(args[1:]); err != nil {
		return err
	}
	switch args[0] {
	case "dist":
		v, err := versionOr(ctx, root, *version)
		if err != nil {
			return err
		}
		where, err := chosen(*on)
		if err != nil {
			return err
		}
		return dist(ctx, job{root: root, version: v, say: out, on: where}, *to)
	case "check":
		return check(ctx, root, out)
	case "notes":
		return printNotes(filepath.Join(root, "CHANGELOG.md"), flags.Arg(0), out)
	default:
		return fmt.Errorf("%q: %s", args[0], usage)
	}
}

// versionForm keeps what a version is from meaning anything to a linker or a shell.
var versionForm = regexp.MustCompile(`^[0-9A-Za-z][0-9A-Za-z.+-]*$`)

// versionOr returns the version that was given, or the one that git knows.
func versionOr(ctx context.Context, root, given string) (string, error) {
	if given == "" {
		describe := exec.CommandContext(ctx, "git", "describe", "--tags", "--always", "--dirty", "--match", "v*")
		describe.Dir = root
		words, err := describe.Output()
		if err != nil {
			return "", fmt.Errorf("git describe: %w; give -version where there is no repository", err)
		}
		given = strings.TrimSpace(string(words))
	}
	if !versionForm.MatchString(given) {
		return "", fmt.Errorf("version %q: only letters, digits and .+- are taken", given)
	}
	return given, nil
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
