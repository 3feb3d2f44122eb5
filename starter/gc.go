package main

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"go.temporal.io/sdk/temporal"

	"github.com/egressfleet/egressfleet/activities"
	"github.com/egressfleet/egressfleet/starter/fleet"
	"github.com/egressfleet/egressfleet/workflows/gc"
)

func (a *app) gcCommand() *cobra.Command {
	return a.sweepCommand(sweep{
		use: "gc", short: "Collect orphans: what no proxy owns any more", schedule: fleet.OrphanGC(),
		plan: func() *cobra.Command {
			return a.sweepOrphansCommand("plan", "Say what would be deleted, and why", true)
		},
		run: func() *cobra.Command {
			return a.sweepOrphansCommand("run", "Delete what is proven to be an orphan", false)
		},
		last: func() (any, func(time.Time) string) {
			var r gc.Result
			return &r, func(time.Time) string { return sweepTable(a.view(), r, false) }
		},
	})
}

func (a *app) sweepOrphansCommand(use, short string, plan bool) *cobra.Command {
	in := gc.Input{Plan: plan}
	cmd := &cobra.Command{
		Use: use, Short: short, Args: exactly(0),
		RunE: func(cmd *cobra.Command, _ []string) error {
			return a.withFleet(cmd.Context(), func(ctx context.Context, f Fleet) error { return a.sweepOrphans(ctx, f, in) })
		},
	}
	flags := cmd.Flags()
	flags.StringSliceVar(&in.Providers, "provider", nil, "only these providers")
	flags.BoolVar(&in.Everything, "everything", false, "tell also of what is kept without a doubt")
	flags.BoolVar(&in.Unproven, "include-unproven", false,
		"also what may belong to a database that is lost: an owner that nobody knows, older than this installation")
	if !plan {
		flags.BoolVar(&in.Force, "force", false, "also where that is more than one sweep may delete")
	}
	return cmd
}

func (a *app) sweepOrphans(ctx context.Context, f Fleet, in gc.Input) error {
	var r gc.Result
	fault := f.RunSweep(ctx, fleet.OrphanGC(), in, &r)
	app, says := errors.AsType[*temporal.ApplicationError](fault)
	if fault != nil && (!says || app.Type() != gc.ErrRefused) {
		return fmt.Errorf("gc: %w", fault)
	}
	if err := a.printOr(r, sweepTable(a.view(), r, in.Plan)); err != nil {
		return err
	}
	if fault != nil {
		return errors.New("gc: too many orphans to be right; nothing was deleted where that is said above")
	}
	skipped := map[string]*activities.Fault{}
	for _, s := range r.Sweeps {
		skipped[s.Provider] = s.Fault
	}
	return named("gc", in.Providers, skipped)
}

// sweepTable shows what was counted, and every finding with its proof.
func sweepTable(v view, r gc.Result, plan bool) string {
	rows := [][]string{{"PROVIDER", "LISTED", "LIVING", "YOUNG", "DOUBTS", "ORPHANS", "DELETED"}}
	var findings [][]string
	var notes strings.Builder
	for _, s := range r.Sweeps {
		rows = append(rows, []string{
			s.Provider, strconv.Itoa(s.Listed), strconv.Itoa(s.Living), strconv.Itoa(s.Young),
			strconv.Itoa(s.Doubts), strconv.Itoa(s.Convicts), strconv.Itoa(s.Deleted),
		})
		for _, f := range s.Findings {
			findings = append(findings, []string{
				fate(f.Convict, f.Deleted, plan, f.Error), f.ID, f.Kind, f.Owner, age(v.now, f.CreatedAt), f.Why, oneLine(f.Proof),
			})
		}
		note(&notes, s)
	}
	text := v.Table("", rows)
	if len(findings) > 0 {
		text += "\n" + v.Table("", append([][]string{{"", "ID", "KIND", "OWNER", "AGE", "WHY", "PROOF"}}, findings...))
	}
	return text + notes.String()
}

// fate is what becomes of a finding, in a word.
func fate(convict, deleted, plan bool, fault string) string {
	switch {
	case deleted:
		return "deleted"
	case fault != "":
		return "failed"
	case convict && plan:
		return "orphan"
	default:
		return "kept"
	}
}

// note says what a table cannot.
func note(b *strings.Builder, s gc.Sweep) {
	if s.Fault != nil {
		fmt.Fprintf(b, "\n%s was skipped: %s\n", s.Provider, oneLine(s.Fault.Text))
	}
	if s.Refused != "" {
		fmt.Fprintf(b, "\n%s: %s\n", s.Provider, s.Refused)
	}
	if s.Unlisted > 0 {
		fmt.Fprintf(b, "\n%s: %d more are not listed\n", s.Provider, s.Unlisted)
	}
	if len(s.Omitted) > 0 {
		fmt.Fprintf(b, "\n%s: could not be listed: %s\n", s.Provider, strings.Join(s.Omitted, ", "))
	}
	for _, f := range s.Findings {
		if f.Error != "" {
			fmt.Fprintf(b, "\n%s: %s was not deleted: %s\n", s.Provider, f.ID, oneLine(f.Error))
		}
	}
}
