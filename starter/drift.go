package main

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/egressfleet/egressfleet/activities"
	"github.com/egressfleet/egressfleet/starter/fleet"
	"github.com/egressfleet/egressfleet/workflows/drift"
)

func (a *app) driftCommand() *cobra.Command {
	return a.sweepCommand(sweep{
		use: "drift", short: "Notice instances that are not as their proxies show them", schedule: fleet.DriftSweep(),
		plan: func() *cobra.Command { return a.sweepDriftCommand("plan", "Say what would be noticed", true) },
		run: func() *cobra.Command {
			return a.sweepDriftCommand("run", "Let proxies look where something is noticed", false)
		},
		last: func() (any, func(time.Time) string) {
			var r drift.Result
			return &r, func(time.Time) string { return driftTable(a.view(), r) }
		},
	})
}

func (a *app) sweepDriftCommand(use, short string, plan bool) *cobra.Command {
	in := drift.Input{Plan: plan}
	cmd := &cobra.Command{
		Use: use, Short: short, Args: exactly(0),
		RunE: func(cmd *cobra.Command, _ []string) error {
			return a.withFleet(cmd.Context(), func(ctx context.Context, f Fleet) error { return a.sweepDrift(ctx, f, in) })
		},
	}
	cmd.Flags().StringSliceVar(&in.Providers, "provider", nil, "only these providers")
	return cmd
}

func (a *app) sweepDrift(ctx context.Context, f Fleet, in drift.Input) error {
	var r drift.Result
	if err := f.RunSweep(ctx, fleet.DriftSweep(), in, &r); err != nil {
		return fmt.Errorf("drift: %w", err)
	}
	skipped := map[string]*activities.Fault{}
	for _, s := range r.Sweeps {
		skipped[s.Provider] = s.Fault
	}
	return errors.Join(a.printOr(r, driftTable(a.view(), r)), named("drift", in.Providers, skipped))
}

// named is the error about the providers that a person named and that were skipped.
func named(command string, names []string, skipped map[string]*activities.Fault) error {
	var faults []error
	for _, name := range names {
		if f := skipped[name]; f != nil {
			faults = append(faults, fmt.Errorf("%s: --provider: %q was skipped: %s", command, name, oneLine(f.Text)))
		}
	}
	return errors.Join(faults...)
}

func driftTable(v view, r drift.Result) string {
	rows := [][]string{{"PROVIDER", "RUNNING", "LISTED", "HINTS"}}
	var hints [][]string
	var notes strings.Builder
	for _, s := range r.Sweeps {
		rows = append(rows, []string{
			s.Provider, strconv.Itoa(s.Running), strconv.Itoa(s.Listed), strconv.Itoa(s.Hinted),
		})
		for _, h := range s.Hints {
			hints = append(hints, []string{h.Proxy, h.ID, oneLine(h.Reason), oneLine(h.Error)})
		}
		if s.Fault != nil {
			fmt.Fprintf(&notes, "\n%s was skipped: %s\n", s.Provider, oneLine(s.Fault.Text))
		}
		if s.Unlisted > 0 {
			fmt.Fprintf(&notes, "\n%s: %d more are not listed\n", s.Provider, s.Unlisted)
		}
		if len(s.Omitted) > 0 {
			fmt.Fprintf(&notes, "\n%s: could not be listed: %s\n", s.Provider, strings.Join(s.Omitted, ", "))
		}
	}
	text := v.Table("", rows)
	if len(hints) > 0 {
		text += "\n" + v.Table("", append([][]string{{"PROXY", "ID", "NOTICED", "ERROR"}}, hints...))
	}
	return text + notes.String()
}
