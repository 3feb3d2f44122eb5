package main

import (
	"fmt"
	"slices"
	"strings"
)

// parts are the names of what is still to be built. A part leaves the list once it is
// there: then every entry that waited for it has to name its test.
func parts() []string {
	return []string{
		"front door", "operations", "bench",
	}
}

// proofs are the proofs that there are.
type proofs struct {
	tests map[string]bool // <folder of the package>.<name>
	rows  []string
	parts []string
}

// check returns what is wrong with entries that could be read.
func (p proofs) check(entries []entry) []problem {
	var out []problem
	seen, cited := map[string]int{}, map[string]bool{}
	for _, e := range entries {
		if before, twice := seen[e.id]; twice {
			out = append(out, problem{e.line, fmt.Sprintf("%s: is also the id of line %d", e.id, before)})
		}
		seen[e.id] = e.line
		if why := mixed(e.proofs); why != "" {
			out = append(out, problem{e.line, e.id + ": " + why})
		}
		for _, one := range e.proofs {
			cited[one.kind+one.value] = true
			if why := p.fault(one); why != "" {
				out = append(out, problem{e.line, e.id + ": " + why})
			}
		}
	}
	for _, row := range p.rows {
		if !cited[kindRow+row] {
			out = append(out, problem{1, fmt.Sprintf("no entry names the row %s: add it to the rule that it proves", row)})
		}
	}
	return out
}

// fault says why a proof proves nothing; "" when it does.
func (p proofs) fault(one proof) string {
	switch one.kind {
	case kindTest:
		if !p.tests[one.value] {
			return fmt.Sprintf("there is no test %s: name the test that proves the rule now", one.value)
		}
	case kindRow:
		if !slices.Contains(p.rows, one.value) {
			return fmt.Sprintf("there is no row %s: name the row that proves the rule now", one.value)
		}
	case kindPart:
		if !slices.Contains(p.parts, one.value) {
			return fmt.Sprintf("%q is no part, want one of %s", one.value, strings.Join(p.parts, ", "))
		}
	case kindWaiver:
		if len(strings.Fields(one.value)) < wordsOfAReason {
			return fmt.Sprintf("the waiver %q gives no reason", one.value)
		}
	default:
		return fmt.Sprintf("%q is no kind of proof, want test, row, part or waiver", one.kind)
	}
	return ""
}

// wordsOfAReason keeps "n/a" and "later" from being one.
const wordsOfAReason = 4

// mixed says why proofs do not go together: what is proved now and what is proved
// later are two entries, or the second would be forgotten.
func mixed(all []proof) string {
	groups := map[string]bool{}
	for _, one := range all {
		if one.kind == kindTest {
			one.kind = kindRow
		}
		groups[one.kind] = true
	}
	if len(groups) > 1 {
		return "tests and rows, later parts and waivers do not share an entry: make it two"
	}
	return ""
}
