// Command contract runs the conformance suite over every provider and every mutant,
// and says what was proven: `go run ./tools/contract`. A provider is found by its
// factory and by its tests, never by a list kept here. It exits with 1 when a mutant
// lives, a row has no mutant, a provider fails or has no suite, or nothing ran. It may
// import everything. Start reading at run; tally.go counts.
package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"slices"
	"strings"
	"syscall"

	"github.com/egressfleet/egressfleet/providers/all"
	"github.com/egressfleet/egressfleet/providers/registry"
	"github.com/egressfleet/egressfleet/testsuite/guides"
	"github.com/egressfleet/egressfleet/testsuite/providertest"
)

const (
	module      = "github.com/egressfleet/egressfleet"
	proof       = module + "/testsuite/providertest"
	ofProviders = module + "/providers/"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "tools/contract:", err)
		os.Exit(1)
	}
}

// run tests what there is and prints the report; its last line is report.closing.
func run(ctx context.Context, out io.Writer) error {
	listed, err := list(ctx)
	if err != nil {
		return err
	}
	p := plan{rows: rowNames(), proof: proof}
	p.suites, p.others = suitesOf(listed, all.Factories())
	if p.reasons, err = reasons(all.Factories()); err != nil {
		return err
	}
	events, err := test(ctx, proof)
	if err != nil {
		return err
	}
	more, err := test(ctx, slices.Concat([]string{"-run=^TestContract"}, p.suites, p.others)...)
	if err != nil {
		return err
	}
	events = append(events, more...)
	return show(out, tally(events, p), events)
}

// show prints a report and returns an error when it has problems.
func show(out io.Writer, r report, events []event) error {
	var text strings.Builder
	if len(r.Problems) > 0 {
		text.WriteString(outputOfFailures(events) + "\n")
	}
	for _, suite := range r.Suites {
		text.WriteString(suite + "\n")
	}
	for _, problem := range r.Problems {
		text.WriteString("PROBLEM: " + problem + "\n")
	}
	if _, err := io.WriteString(out, text.String()+r.closing()+"\n"); err != nil {
		return err
	}
	if len(r.Problems) > 0 {
		return fmt.Errorf("the contract is not proven: %d problems, the first is: %s", len(r.Problems), r.Problems[0])
	}
	return nil
}

func rowNames() []string {
	rows := providertest.Rows()
	names := make([]string, len(rows))
	for i, row := range rows {
		names[i] = row.Name
	}
	return names
}

// listing is a package with what its tests import.
type listing struct {
	ImportPath                string
	TestImports, XTestImports []string
}

// suitesOf returns the packages that have to run the suite, and others whose tests use
// it. A provider has to: the package of every registered type, whatever its tests do,
// and one that is not registered yet.
func suitesOf(listed []listing, factories []registry.Factory) (suites, others []string) {
	for _, f := range factories {
		suites = append(suites, ofProviders+f.Type())
	}
	for _, l := range listed {
		switch {
		case l.ImportPath == proof || !slices.Contains(append(l.TestImports, l.XTestImports...), proof):
		case strings.HasPrefix(l.ImportPath, ofProviders):
			suites = append(suites, l.ImportPath)
		default:
			others = append(others, l.ImportPath)
		}
	}
	slices.Sort(suites)
	return slices.Compact(suites), others
}

// reasons reads, from the guide of every type, what it says about the rows that it
// leaves out. The working directory is the module's root.
func reasons(factories []registry.Factory) (map[string]string, error) {
	told := map[string]string{}
	for _, f := range factories {
		guide, err := os.ReadFile("docs/providers/" + f.Type() + ".md")
		if err != nil {
			return nil, fmt.Errorf("the guide of the type %q: %w", f.Type(), err)
		}
		for _, a := range guides.Answers(string(guide)) {
			if a.Entry == "left-out" {
				told[ofProviders+f.Type()] = a.Text
			}
		}
	}
	return told, nil
}

// list returns every package of the module around the working directory.
func list(ctx context.Context) ([]listing, error) {
	out, err := exec.CommandContext(ctx, "go", "list", "-json=ImportPath,TestImports,XTestImports", module+"/...").Output()
	if err != nil {
		return nil, fmt.Errorf("go list: %w", err)
	}
	var all []listing
	for decoder := json.NewDecoder(bytes.NewReader(out)); decoder.More(); {
		var l listing
		if err := decoder.Decode(&l); err != nil {
			return nil, fmt.Errorf("go list: %w", err)
		}
		all = append(all, l)
	}
	return all, nil
}

// test runs tests anew and returns their events. A test that fails is no error.
func test(ctx context.Context, args ...string) ([]event, error) {
	args = append([]string{"test", "-json", "-count=1"}, args...)
	cmd := exec.CommandContext(ctx, "go", args...) //nolint:gosec // the packages are our own
	cmd.Stderr = os.Stderr
	out, err := cmd.Output()
	if exit, ended := errors.AsType[*exec.ExitError](err); err != nil && (!ended || !exit.Exited()) {
		return nil, fmt.Errorf("go test: %w", err)
	}
	return decode(bytes.NewReader(out))
}
