package main

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
)

// entry is one line of the ledger.
type entry struct {
	line   int // in the file, from 1
	id     string
	level  string
	rule   string
	proofs []proof
}

// proof is what answers for an entry.
type proof struct {
	kind  string
	value string
}

// The kinds of proof.
const (
	kindTest   = "test"   // <folder of the package>.<name of the test>
	kindRow    = "row"    // name of a row of the conformance suite
	kindPart   = "part"   // name of a part that is not built yet
	kindWaiver = "waiver" // why nothing proves it
)

// problem is what is wrong with a line.
type problem struct {
	line int
	text string
}

const (
	header    = "| id | level | rule | proof |"
	separator = "|---|---|---|---|"
)

// levels are the words that an entry may have: the contract's own, and what else a
// provider answers for.
func levels() []string {
	return []string{"MUST", "SHOULD", "MAY", "gap", "feature", "limit", "addition"}
}

var idForm = regexp.MustCompile(`^[A-Z](-[0-9]+(\.[0-9]+)?)?-[0-9]{2}$`)

// parse reads the tables of a ledger. Every line with a bar belongs to a table, so
// that a broken one is not taken for prose.
func parse(text string) ([]entry, []problem) {
	var entries []entry
	var problems []problem
	for i, line := range strings.Split(text, "\n") {
		if !strings.Contains(line, "|") || line == header || line == separator {
			continue
		}
		e, err := parseLine(line)
		if err != nil {
			problems = append(problems, problem{i + 1, err.Error()})
			continue
		}
		e.line = i + 1
		entries = append(entries, e)
	}
	return entries, problems
}

func parseLine(line string) (entry, error) {
	inner, opened := strings.CutPrefix(line, "| ")
	inner, closed := strings.CutSuffix(inner, " |")
	cells := strings.Split(inner, " | ")
	if !opened || !closed || len(cells) != 4 || slices.Contains(cells, "") {
		return entry{}, fmt.Errorf("%q is not a line of four cells: id, level, rule, proof", line)
	}
	e := entry{id: cells[0], level: cells[1], rule: cells[2]}
	if !idForm.MatchString(e.id) {
		return entry{}, fmt.Errorf("%q is not an id such as C-2.1-03 or K-07", e.id)
	}
	if !slices.Contains(levels(), e.level) {
		return entry{}, fmt.Errorf("%s: level %q is none of %s", e.id, e.level, strings.Join(levels(), ", "))
	}
	var err error
	if e.proofs, err = parseProofs(cells[3]); err != nil {
		return entry{}, fmt.Errorf("%s: %w", e.id, err)
	}
	return e, nil
}

// parseProofs reads `row: A; test: x.TestB`. A waiver stands alone, and its reason may
// have semicolons.
func parseProofs(cell string) ([]proof, error) {
	if reason, ok := strings.CutPrefix(cell, kindWaiver+":"); ok {
		return []proof{{kindWaiver, strings.TrimSpace(reason)}}, nil
	}
	var out []proof
	for text := range strings.SplitSeq(cell, "; ") {
		kind, value, ok := strings.Cut(text, ": ")
		if !ok || strings.TrimSpace(value) == "" {
			return nil, fmt.Errorf("%q is not a proof such as \"row: CreateIsIdempotent\"", text)
		}
		out = append(out, proof{kind, strings.TrimSpace(value)})
	}
	return out, nil
}

// summarise counts entries by what answers for them.
func summarise(entries []entry) string {
	counts := map[string]int{}
	for _, e := range entries {
		counts[e.proofs[0].kind]++
	}
	return fmt.Sprintf("ledger: %d entries, %d by tests, %d by a later part, %d waived",
		len(entries), counts[kindTest]+counts[kindRow], counts[kindPart], counts[kindWaiver])
}
