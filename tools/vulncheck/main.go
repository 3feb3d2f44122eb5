// Command vulncheck runs govulncheck over the module and says which of three things came
// of it: nothing was found, something was found, or nobody could look, such as without
// a way to the database. The last two fail, each with an exit code of its own. It
// imports only the standard library. Start reading at judge.
package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"strings"
	"syscall"
)

// Exit codes. Those of govulncheck itself are 3 where something was found, and 1 for
// whatever else.
const (
	exitNothing  = 0
	exitFound    = 3
	exitNoLook   = 4
	foundByThem  = 3
	failedByThem = 1
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	os.Exit(run(ctx, os.Args[1:], os.Stdout, os.Stderr))
}

// run passes its arguments on; without, everything of this module is looked at.
func run(ctx context.Context, args []string, out, errs io.Writer) int {
	if len(args) == 0 {
		args = []string{"-test=false", "./..."}
	}
	var words bytes.Buffer
	check := exec.CommandContext(ctx, "bin/govulncheck", args...) //nolint:gosec // pinned in tools/vuln
	check.Stdout, check.Stderr = io.MultiWriter(out, &words), io.MultiWriter(errs, &words)
	err := check.Run()
	code := 0
	if err != nil {
		code = failedByThem
	}
	if exit, is := errors.AsType[*exec.ExitError](err); is {
		code = exit.ExitCode()
	} else if err != nil {
		_, _ = fmt.Fprintln(&words, err)
	}
	exit, verdict := judge(code, words.String())
	_, _ = fmt.Fprintln(out, verdict)
	return exit
}

// judge tells apart what govulncheck's exit code alone does not.
func judge(code int, words string) (exit int, verdict string) {
	switch {
	case code == 0:
		return exitNothing, "vulncheck: nothing is known against what our code calls"
	case code == foundByThem:
		return exitFound, "vulncheck: vulnerabilities were found, see above"
	case isUnreachable(words):
		return exitNoLook, "vulncheck: NOT CHECKED: the database of vulnerabilities cannot be reached; nothing was found " +
			"out.\nIt is https://vuln.go.dev; a mirror, or a copy on disk, is given by: " +
			"go run ./tools/vulncheck -db file:///COPY ./..."
	default:
		return exitNoLook, "vulncheck: NOT CHECKED: govulncheck failed, see above; nothing was found out"
	}
}

// isUnreachable reads what govulncheck says when it cannot fetch.
func isUnreachable(words string) bool {
	return strings.Contains(words, "fetching vulnerabilities:")
}
