package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"go.temporal.io/sdk/temporal"

	"github.com/egressfleet/egressfleet/starter/fleet"
	"github.com/egressfleet/egressfleet/workflows/openproxy"
)

func (a *app) openCommand() *cobra.Command {
	return a.sweepCommand(sweep{
		use: "open", short: "Find proxies that let strangers in, by the second prober", schedule: fleet.OpenProxyCheck(),
		run: a.runOpenCommand,
		last: func() (any, func(time.Time) string) {
			var r openproxy.Result
			return &r, func(time.Time) string { return openTable(a.view(), r) }
		},
	})
}

func (a *app) runOpenCommand() *cobra.Command {
	var in openproxy.Input
	cmd := &cobra.Command{
		Use: "run", Short: "Have every running proxy asked as a stranger", Args: exactly(0),
		RunE: func(cmd *cobra.Command, _ []string) error {
			return a.withFleet(cmd.Context(), func(ctx context.Context, f Fleet) error { return a.checkOpen(ctx, f, in) })
		},
	}
	cmd.Flags().DurationVar(&in.Patience, "patience", 0, "how long a second prober may take to begin (0: a minute)")
	return cmd
}

// checkOpen shows what a check came to, also where there was no second prober, which
// fails.
func (a *app) checkOpen(ctx context.Context, f Fleet, in openproxy.Input) error {
	var r openproxy.Result
	fault := f.RunSweep(ctx, fleet.OpenProxyCheck(), in, &r)
	app, told := errors.AsType[*temporal.ApplicationError](fault)
	if fault != nil && (!told || app.Type() != openproxy.ErrNoSecondProber) {
		return fmt.Errorf("open: %w", fault)
	}
	if err := a.printOr(r, openTable(a.view(), r)); err != nil {
		return err
	}
	if fault != nil {
		return fmt.Errorf("open: %s", app.Message())
	}
	return nil
}

// openTable shows what was counted, who is open, and who has changed.
func openTable(v view, r openproxy.Result) string {
	rows := [][]string{{"PROVIDER", "OPEN", "CLOSED", "UNKNOWN"}}
	for name, n := range r.Counts {
		rows = append(rows, []string{name, strconv.Itoa(n.Open), strconv.Itoa(n.Closed), strconv.Itoa(n.Unknown)})
	}
	slices.SortFunc(rows[1:], slices.Compare)
	text := v.Table("", rows)
	if len(r.Open) > 0 {
		text += "\nopen: " + strings.Join(r.Open, ", ") + "\n"
	}
	if len(r.Changed) > 0 {
		changed := [][]string{{"PROXY", "NOW", "REASON", "FOUND"}}
		for _, c := range r.Changed {
			changed = append(changed, []string{c.Proxy, string(c.Status), c.Reason, oneLine(c.Text)})
		}
		text += "\n" + v.Table("", changed)
	}
	var notes strings.Builder
	for _, f := range r.Faults {
		fmt.Fprintf(&notes, "\na page failed: %s\n", oneLine(f.Text))
	}
	if r.Unlisted > 0 {
		fmt.Fprintf(&notes, "\n%d lines are left out\n", r.Unlisted)
	}
	if r.Untold > 0 {
		fmt.Fprintf(&notes, "\n%d changes could not be told; the next check does\n", r.Untold)
	}
	return text + notes.String()
}
