// Command profiles writes the table of providers into docs/providers/README.md: every
// axis of the contract, and what each registered type answers. `make generate` runs it,
// and `make verify` fails when the table was not current. It may import everything.
// Start reading at table.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/egressfleet/egressfleet/testsuite/guides"
)

//go:generate go run . ../..

// The table stands between these lines; what is around them is written by hand.
const (
	begin = "<!-- begin of the table that make generate writes -->\n"
	end   = "<!-- end of the table that make generate writes -->\n"
)

func main() {
	if err := run(context.Background(), os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "tools/profiles:", err)
		os.Exit(1)
	}
}

// run rewrites the page of the module whose root is the only argument.
func run(ctx context.Context, args []string) error {
	if len(args) != 1 {
		return errors.New("usage: profiles ROOT")
	}
	types, err := guides.Profiles(ctx, args[0])
	if err != nil {
		return err
	}
	path := filepath.Join(args[0], "docs", "providers", "README.md")
	page, err := os.ReadFile(path) //nolint:gosec // the page of this module
	if err != nil {
		return err
	}
	text, err := splice(string(page), table(types))
	if err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	return os.WriteFile(path, []byte(text), 0o644) //nolint:gosec // a page that everybody reads
}

// section is the one of the contract whose subsections are the axes, in their order.
const section = 4

// table has a row for every axis and a column for every type.
func table(types []guides.Typed) string {
	if len(types) == 0 {
		return ""
	}
	var rows strings.Builder
	rows.WriteString("| § | axis |")
	for _, t := range types {
		fmt.Fprintf(&rows, " [%s](%s.md) |", t.Type, t.Type)
	}
	rows.WriteString("\n|---|---|" + strings.Repeat("---|", len(types)) + "\n")
	for i, axis := range types[0].Profile.Axes() {
		fmt.Fprintf(&rows, "| %d.%d | %s |", section, i+1, axis.Name)
		for _, t := range types {
			fmt.Fprintf(&rows, " %s |", t.Profile.Axes()[i].Choice)
		}
		rows.WriteString("\n")
	}
	return rows.String()
}

// splice puts a table in the place of the one that a page has.
func splice(page, table string) (string, error) {
	before, rest, found := strings.Cut(page, begin)
	_, after, ended := strings.Cut(rest, end)
	if !found || !ended {
		return "", fmt.Errorf("the lines around the table are missing, want %q and %q",
			strings.TrimSpace(begin), strings.TrimSpace(end))
	}
	return before + begin + "\n" + table + "\n" + end + after, nil
}
