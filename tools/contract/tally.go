package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"path"
	"slices"
	"strings"
)

// The tests that prove the suite itself. Renaming one there renames it here.
const (
	testMutants    = "TestEveryMutantIsCaught" // one subtest for each mutant
	testHasMutants = "TestEveryRowHasAMutant"
)

// event is one line of "go test -json". Package is empty and ImportPath set in the
// lines of a build.
type event struct {
	Action     string
	Package    string
	ImportPath string
	Test       string
	Output     string
}

// The actions that end a test or a package.
const (
	passed  = "pass"
	failed  = "fail"
	skipped = "skip"
)

// decode reads the events of a stream.
func decode(r io.Reader) ([]event, error) {
	var events []event
	for decoder := json.NewDecoder(r); ; {
		var e event
		switch err := decoder.Decode(&e); {
		case errors.Is(err, io.EOF):
			return events, nil
		case err != nil:
			return events, fmt.Errorf("go test -json: %w", err)
		}
		events = append(events, e)
	}
}

// plan is what has to be in the events.
type plan struct {
	rows   []string // the names of the suite's rows
	proof  string   // the package that tests the suite
	suites []string // the packages that have to run it over a provider
	others []string // the packages whose tests use it; their TestContract counts, too
}

// report is what the events prove.
type report struct {
	Rows, Mutants, Killed int
	Suites                []string // a line for each package that runs the suite
	Problems              []string // empty: the contract holds
}

// closing is the last line of a run.
func (r report) closing() string {
	return fmt.Sprintf("providertest: %d rows, %d mutants, %d killed", r.Rows, r.Mutants, r.Killed)
}

// tally counts what ran, not what should have: a row counts once it has passed for
// some provider, and a mutant is killed when its subtest passes.
func tally(events []event, p plan) report {
	ends := endsOf(events)
	var r report
	proven := map[string]bool{}
	for _, pkg := range slices.Concat([]string{p.proof}, p.suites, p.others) {
		rows := rowsOf(ends[pkg], p.rows)
		r.judgePackage(pkg, ends[pkg])
		if len(rows) == 0 {
			if !slices.Contains(p.others, pkg) {
				r.problem("%s ran no row: it needs a TestContract that runs providertest.Suite", pkg)
			}
			continue
		}
		for row, end := range rows {
			proven[row] = proven[row] || end == passed
		}
		r.Suites = append(r.Suites, line(pkg, rows, p.rows))
	}
	for _, row := range p.rows {
		if !proven[row] {
			r.problem("row %s has passed for no provider", row)
			continue
		}
		r.Rows++
	}
	r.judgeMutants(ends[p.proof])
	return r
}

func (r *report) problem(format string, args ...any) {
	r.Problems = append(r.Problems, fmt.Sprintf(format, args...))
}

// judgePackage finds what is wrong with a package: its own end is that of the test "".
func (r *report) judgePackage(pkg string, ends map[string]string) {
	switch {
	case ends[""] == "":
		r.problem("%s did not end", pkg)
	case ends[""] != passed:
		r.problem("%s: %s", pkg, ends[""])
	}
}

// judgeMutants counts mutants and names those that live.
func (r *report) judgeMutants(ends map[string]string) {
	if ends[testHasMutants] != passed {
		r.problem("%s did not pass: a row has no mutant", testHasMutants)
	}
	if ends[testMutants] != passed {
		r.problem("%s did not pass", testMutants)
	}
	for _, name := range slices.Sorted(maps.Keys(ends)) {
		mutant, is := strings.CutPrefix(name, testMutants+"/")
		if !is || partOfAnother(name, ends) {
			continue
		}
		r.Mutants++
		if ends[name] == passed {
			r.Killed++
			continue
		}
		r.problem("mutant %s is alive: its test did not pass", mutant)
	}
	if r.Mutants == 0 {
		r.problem("no mutant ran")
	}
}

// partOfAnother reports whether a test is a step of another one below testMutants.
func partOfAnother(name string, ends map[string]string) bool {
	for above := path.Dir(name); above != testMutants && above != "."; above = path.Dir(above) {
		if _, is := ends[above]; is {
			return true
		}
	}
	return false
}

// endsOf returns how each test of each package ended; empty for one that began and
// did not end.
func endsOf(events []event) map[string]map[string]string {
	ends := map[string]map[string]string{}
	for _, e := range events {
		if ends[e.Package] == nil {
			ends[e.Package] = map[string]string{}
		}
		switch e.Action {
		case passed, failed, skipped:
			ends[e.Package][e.Test] = e.Action
		case "start", "run":
			ends[e.Package][e.Test] = ""
		}
	}
	return ends
}

// rowsOf returns how each row ended; one that ran more than once, how it ended worst.
func rowsOf(ends map[string]string, rows []string) map[string]string {
	found := map[string]string{}
	for name, end := range ends {
		row := path.Base(name)
		if !slices.Contains(rows, row) || under(name, testMutants) {
			continue
		}
		if before, again := found[row]; !again || before == passed {
			found[row] = end
		}
	}
	return found
}

func under(name, test string) bool { return strings.HasPrefix(name, test+"/") }

// line says what a package ran, and what of the suite it left out.
func line(pkg string, ran map[string]string, rows []string) string {
	var out []string
	good := 0
	for _, row := range rows {
		switch end, has := ran[row]; {
		case end == passed:
			good++
		case !has || end == skipped:
			out = append(out, row)
		}
	}
	text := fmt.Sprintf("%s: %d of %d rows passed", pkg, good, len(rows))
	if len(out) > 0 {
		text += "; left out: " + strings.Join(out, ", ")
	}
	return text
}

// outputOfFailures returns what the failed tests and builds printed, in their order.
func outputOfFailures(events []event) string {
	ends := endsOf(events)
	var text strings.Builder
	for _, e := range events {
		end, known := ends[e.Package][e.Test]
		if e.Action == "build-output" || e.Action == "output" && (!known || end == failed || end == "") {
			text.WriteString(e.Output)
		}
	}
	return text.String()
}
