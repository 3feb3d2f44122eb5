package adoption

import (
	"fmt"
	"strings"
)

// shownClaims is how many lines the Web UI shows; the result has more.
const shownClaims = 20

// Markdown is what a person reads in the Web UI.
func (r *Result) Markdown() string {
	var b strings.Builder
	b.WriteString("| provider | listed | living | adoptable | adopted | left | orphans | |\n" +
		"|---|---|---|---|---|---|---|---|\n")
	for _, p := range r.Providers {
		note := ""
		if p.Fault != nil {
			note = "skipped: " + strings.NewReplacer("|", "\\|", "\n", " ").Replace(p.Fault.Text)
		}
		fmt.Fprintf(&b, "| %s | %d | %d | %d | %d | %d | %d | %s |\n",
			p.Provider, p.Listed, p.Living, p.Adoptable, p.Adopted, p.Left, p.Orphans, note)
	}
	left := shownClaims
	for _, p := range r.Providers {
		shown := p.Claims[:min(left, len(p.Claims))]
		left -= len(shown)
		for _, c := range shown {
			fmt.Fprintf(&b, "\n- `%s` of %s: **%s**", c.ID, c.Owner, c.Why)
			switch {
			case c.Adopted:
				b.WriteString(", adopted")
			case c.Error != "":
				b.WriteString(", " + c.Error)
			case c.Proof != "":
				b.WriteString(", " + c.Proof)
			}
		}
	}
	return b.String()
}
