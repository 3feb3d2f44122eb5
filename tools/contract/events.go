package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"path"
	"regexp"
	"slices"
	"strings"
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

// rowsOf returns how each row ended; one that ran more than once, how it ended worst. A
// skip says nothing about a row that ran elsewhere.
func rowsOf(ends map[string]string, rows []string) map[string]string {
	found := map[string]string{}
	for name, end := range ends {
		row := path.Base(name)
		if !slices.Contains(rows, row) || under(name, testMutants) {
			continue
		}
		before, again := found[row]
		if !again || before == skipped || before == passed && end != skipped {
			found[row] = end
		}
	}
	return found
}

// unfit finds what a suite says of the rows that its provider's profile excludes.
var unfit = regexp.MustCompile(`(\w+) does not fit the profile: `)

// unfitOf returns the rows that do not fit the profile of a package's provider.
func unfitOf(events []event, pkg string) (rows []string) {
	for _, e := range events {
		if said := unfit.FindStringSubmatch(e.Output); e.Package == pkg && said != nil {
			rows = append(rows, said[1])
		}
	}
	return rows
}

func under(name, test string) bool { return strings.HasPrefix(name, test+"/") }

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
