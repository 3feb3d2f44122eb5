package health

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"go.temporal.io/sdk/workflow"

	"github.com/egressfleet/egressfleet/activities"
)

// failingOf returns the proxies of a provider whose spec asks for another instance, the
// one first that has waited longest. It is pure.
func failingOf(p Provider, reports []activities.BatchReport) (failing []activities.Failing) {
	for _, report := range reports {
		for _, f := range report.Failing {
			if f.Provider == p.Name {
				failing = append(failing, f)
			}
		}
	}
	slices.SortStableFunc(failing, func(a, b activities.Failing) int {
		return cmp.Or(a.Since.Compare(b.Since), strings.Compare(a.Namespace, b.Namespace), strings.Compare(a.Name, b.Name))
	})
	return failing
}

// Markdown is what a person reads in the Web UI.
func (r Result) Markdown() string {
	var b strings.Builder
	b.WriteString("| provider | passed | failed | undecided | breaker | to be replaced | replaced |\n")
	b.WriteString("|---|---|---|---|---|---|---|\n")
	for _, p := range r.Providers {
		breaker := "closed"
		if p.Breaker {
			breaker = "**open**: more than half fail at once, nothing is replaced"
		}
		fmt.Fprintf(&b, "| %s | %d | %d | %d | %s | %d | %s |\n", p.Name, p.Tally.Passed, p.Tally.Failed,
			p.Tally.Undecided, breaker, p.Failing, strings.Join(p.Replaced, ", "))
	}
	fmt.Fprintf(&b, "\n%d probed", r.Probed)
	for _, reason := range workflow.DeterministicKeys(r.Reasons) {
		fmt.Fprintf(&b, ", %d %s", r.Reasons[reason], reason)
	}
	b.WriteString("\n")
	for _, c := range r.Changed {
		fmt.Fprintf(&b, "\n- %s: **%s** %s", c.Proxy, c.Reason, c.Text)
	}
	for _, f := range r.Faults {
		fmt.Fprintf(&b, "\n- a batch failed: %s", f.Text)
	}
	return b.String()
}
