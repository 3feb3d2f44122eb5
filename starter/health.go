package main

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/egressfleet/egressfleet/activities"
	v1 "github.com/egressfleet/egressfleet/api/v1"
	"github.com/egressfleet/egressfleet/starter/fleet"
	"github.com/egressfleet/egressfleet/workflows/health"
)

func (a *app) healthCommand() *cobra.Command {
	return a.sweepCommand(sweep{
		use: "health", short: "Probe the running proxies as their clients use them", schedule: fleet.HealthRound(),
		plan: a.healthPlanCommand,
		run: func() *cobra.Command {
			return &cobra.Command{
				Use: "run", Args: exactly(0),
				Short: "Probe every running proxy once, tell those that changed, and replace what asks for it",
				RunE:  func(cmd *cobra.Command, _ []string) error { return a.withFleet(cmd.Context(), a.probeRound) },
			}
		},
		last: func() (any, func(time.Time) string) {
			var r health.Result
			return &r, func(time.Time) string { return healthTable(a.view(), r) }
		},
	})
}

func (a *app) probeRound(ctx context.Context, f Fleet) error {
	var r health.Result
	if err := f.RunSweep(ctx, fleet.HealthRound(), health.Input{}, &r); err != nil {
		return fmt.Errorf("health: %w", err)
	}
	return a.printOr(r, healthTable(a.view(), r))
}

// healthTable shows one provider a line, then what has changed, then what went wrong.
func healthTable(v view, r health.Result) string {
	rows := [][]string{{"PROVIDER", "PASSED", "FAILED", "UNDECIDED", "BREAKER", "OVERDUE", "REPLACED"}}
	for _, p := range r.Providers {
		rows = append(rows, []string{
			p.Name, strconv.Itoa(p.Tally.Passed), strconv.Itoa(p.Tally.Failed), strconv.Itoa(p.Tally.Undecided),
			breaker(p), strconv.Itoa(p.Failing), strings.Join(p.Replaced, ", "),
		})
	}
	text := "no running proxies\n"
	if len(r.Providers) > 0 {
		text = v.Table("", rows)
	}
	if len(r.Changed) > 0 {
		changes := [][]string{{"PROXY", "HEALTH", "REASON", "FOUND"}}
		for _, c := range r.Changed {
			changes = append(changes, []string{c.Proxy, called(c), c.Reason, oneLine(c.Text)})
		}
		text += "\n" + v.Table("", changes)
	}
	return text + healthNotes(r)
}

func breaker(p health.Provider) string {
	if p.Breaker {
		return "OPEN"
	}
	return "closed"
}

// called is what a proxy is called after a change; nothing is known by what blames nobody.
func called(c activities.Change) string {
	switch {
	case c.Healthy:
		return "healthy"
	case c.Reason == v1.ReasonInconclusive, c.Reason == v1.ReasonNoTarget:
		return "unknown"
	default:
		return "unhealthy"
	}
}

// healthNotes says what a table cannot.
func healthNotes(r health.Result) string {
	var notes strings.Builder
	for _, p := range r.Providers {
		if p.Breaker {
			fmt.Fprintf(&notes, "\n%s: more than half fail at once, nothing is replaced\n", p.Name)
		}
		if p.Fault != nil {
			fmt.Fprintf(&notes, "\n%s: could not be asked for replacements: %s\n", p.Name, oneLine(p.Fault.Text))
		}
	}
	if r.Unlisted > 0 {
		fmt.Fprintf(&notes, "\n%d more changes are not listed\n", r.Unlisted)
	}
	if r.Untold > 0 {
		fmt.Fprintf(&notes, "\n%d changes could not be told; the next round does\n", r.Untold)
	}
	for _, f := range r.Faults {
		fmt.Fprintf(&notes, "\na batch failed: %s\n", oneLine(f.Text))
	}
	return notes.String()
}
