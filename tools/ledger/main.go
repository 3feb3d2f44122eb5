// Command ledger checks docs/contract-ledger.md, which names for every rule of the
// provider contract the test, the row, the later part or the waiver that answers for
// it: `go run ./tools/ledger`. It fails on a proof that is gone. It imports the
// conformance suite for the names of its rows. Start reading at run; check.go says
// what is wrong.
package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/egressfleet/egressfleet/testsuite/providertest"
)

// ledgerFile is relative to the root of the module.
const ledgerFile = "docs/contract-ledger.md"

func main() {
	root, err := moduleRoot()
	if err == nil {
		var summary string
		if summary, err = run(os.DirFS(root)); err == nil {
			fmt.Println(summary)
			return
		}
	}
	fmt.Fprintln(os.Stderr, err)
	os.Exit(1)
}

// run checks the ledger of a module and returns the line that sums it up. Its error
// has a line for each problem: file, line, what is wrong.
func run(root fs.FS) (string, error) {
	text, err := fs.ReadFile(root, ledgerFile)
	if err != nil {
		return "", fmt.Errorf("ledger: %w", err)
	}
	tests, err := testsOf(root)
	if err != nil {
		return "", fmt.Errorf("ledger: %w", err)
	}
	entries, problems := parse(string(text))
	problems = append(problems, proofs{tests: tests, rows: rows(), parts: parts()}.check(entries)...)
	var failures []error
	for _, p := range problems {
		failures = append(failures, fmt.Errorf("%s:%d: %s", ledgerFile, p.line, p.text))
	}
	return summarise(entries), errors.Join(failures...)
}

// rows are the names of the suite's rows.
func rows() []string {
	var names []string
	for _, row := range providertest.Rows() {
		names = append(names, row.Name)
	}
	return names
}

// moduleRoot is the nearest directory with a go.mod, from the working directory up.
func moduleRoot() (string, error) {
	dir, err := os.Getwd()
	if err != nil {
		return "", err
	}
	for {
		if _, err := os.Stat(filepath.Join(dir, "go.mod")); err == nil {
			return dir, nil
		}
		above := filepath.Dir(dir)
		if above == dir {
			return "", errors.New("ledger: no go.mod around the working directory")
		}
		dir = above
	}
}
