package gc

import (
	"fmt"
	"strings"
)

// shownFindings is how many lines the Web UI shows; the result has more.
const shownFindings = 20

// Markdown is what a person reads in the Web UI.
func (r *Result) Markdown() string {
	var b strings.Builder
	b.WriteString("| provider | listed | living | young | doubts | orphans | deleted | |\n" +
		"|---|---|---|---|---|---|---|---|\n")
	for _, s := range r.Sweeps {
		note := s.Refused
		if s.Fault != nil {
			note = "skipped: " + s.Fault.Text
		}
		fmt.Fprintf(&b, "| %s | %d | %d | %d | %d | %d | %d | %s |\n",
			s.Provider, s.Listed, s.Living, s.Young, s.Doubts, s.Convicts, s.Deleted, cell(note))
	}
	left := shownFindings
	for _, s := range r.Sweeps {
		for _, f := range s.Findings[:min(left, len(s.Findings))] {
			fmt.Fprintf(&b, "\n- `%s` (%s) of %s: **%s**, %s", f.ID, f.Kind, f.Owner, f.Why, f.Proof)
			if f.Error != "" {
				fmt.Fprintf(&b, "; not deleted: %s", f.Error)
			}
			left--
		}
	}
	return b.String()
}

// cell keeps a text inside its cell of a table.
func cell(text string) string { return strings.NewReplacer("|", "\\|", "\n", " ").Replace(text) }
