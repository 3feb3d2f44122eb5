package openproxy

import (
	"fmt"
	"strings"

	"go.temporal.io/sdk/workflow"

	"github.com/egressfleet/egressfleet/activities"
)

// Result is what a check came to. Serialised.
type Result struct {
	Asked          int                            `json:"asked"`
	NoSecondProber bool                           `json:"noSecondProber,omitempty"` // for one page at least
	Counts         map[string]activities.Openings `json:"counts,omitempty"`         // by provider
	Open           []string                       `json:"open,omitempty"`           // namespace/name
	Changed        []activities.OpenProxyChange   `json:"changed,omitempty"`
	Unlisted       int                            `json:"unlisted,omitempty"` // lines of both lists that are left out
	Untold         int                            `json:"untold,omitempty"`   // changes that could not be told
	Faults         []activities.Fault             `json:"faults,omitempty"`   // pages that failed
}

func (r *Result) add(report activities.OpenProxyReport) {
	r.Asked += report.Asked
	r.Untold += report.Untold
	r.Open = append(r.Open, report.Open...)
	r.Changed = append(r.Changed, report.Changed...)
	for _, name := range workflow.DeterministicKeys(report.Counts) {
		more, n := report.Counts[name], r.Counts[name]
		n.Open, n.Closed, n.Unknown = n.Open+more.Open, n.Closed+more.Closed, n.Unknown+more.Unknown
		r.Counts[name] = n
	}
}

// cut keeps a result within what a history takes.
func (r *Result) cut() {
	r.Unlisted = max(0, len(r.Open)-linesKept) + max(0, len(r.Changed)-linesKept)
	r.Open, r.Changed = r.Open[:min(len(r.Open), linesKept)], r.Changed[:min(len(r.Changed), linesKept)]
}

// Markdown is what a person reads in the Web UI.
func (r Result) Markdown() string {
	var b strings.Builder
	b.WriteString("| provider | open | closed | unknown |\n|---|---|---|---|\n")
	for _, name := range workflow.DeterministicKeys(r.Counts) {
		n := r.Counts[name]
		fmt.Fprintf(&b, "| %s | %d | %d | %d |\n", name, n.Open, n.Closed, n.Unknown)
	}
	if r.NoSecondProber {
		b.WriteString("\n**No second prober** has taken the check up: a worker with the role outside has to run\n")
	}
	for _, name := range r.Open {
		fmt.Fprintf(&b, "\n- **open**: %s", name)
	}
	for _, c := range r.Changed {
		fmt.Fprintf(&b, "\n- changed: %s is **%s** %s", c.Proxy, c.Reason, c.Text)
	}
	for _, f := range r.Faults {
		fmt.Fprintf(&b, "\n- a page failed: %s", f.Text)
	}
	return b.String()
}
