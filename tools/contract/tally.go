package main

import (
	"fmt"
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

// plan is what has to be in the events.
type plan struct {
	rows   []string // the names of the suite's rows
	proof  string   // the package that tests the suite
	suites []string // the packages that have to run it over a provider
	others []string // the packages whose tests use it; their TestContract counts, too
	// reasons is what the guide of a package says about the rows that it leaves out.
	reasons map[string]string
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
		excluded := unfitOf(events, pkg)
		out := leftOut(rows, p.rows, excluded)
		r.Suites = append(r.Suites, line(pkg, rows, out, len(p.rows)))
		if reason, has := p.reasons[pkg]; has {
			r.judgeReasons(pkg, reason, out, p.rows)
		}
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

// judgeReasons holds what a guide says about the rows that are left out against those
// that are.
func (r *report) judgeReasons(pkg, reason string, out, rows []string) {
	for _, row := range rows {
		switch named, left := strings.Contains(reason, "`"+row+"`"), slices.Contains(out, row); {
		case left && !named:
			r.problem("%s leaves out %s, and its guide has no reason under left-out", pkg, row)
		case named && !left:
			r.problem("%s does not leave out %s, and its guide says under left-out that it does", pkg, row)
		}
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

// leftOut returns the rows that a package did not run, though they fit its profile.
func leftOut(ran map[string]string, rows, unfit []string) (out []string) {
	for _, row := range rows {
		end, has := ran[row]
		if (!has || end == skipped) && !slices.Contains(unfit, row) {
			out = append(out, row)
		}
	}
	return out
}

// line says what a package ran, and what of the suite it left out.
func line(pkg string, ran map[string]string, out []string, rows int) string {
	good := 0
	for _, end := range ran {
		if end == passed {
			good++
		}
	}
	text := fmt.Sprintf("%s: %d of %d rows passed", pkg, good, rows)
	if len(out) > 0 {
		text += "; left out: " + strings.Join(out, ", ")
	}
	return text
}
