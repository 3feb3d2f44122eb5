package main

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	v1 "github.com/egressfleet/egressfleet/api/v1"
	"github.com/egressfleet/egressfleet/starter/fleet"
	"github.com/egressfleet/egressfleet/workflows/providercheck"
)

func (a *app) checkCommand() *cobra.Command {
	return a.sweepCommand(sweep{
		use: "check", short: "Ask the providers whether their backends could be used", schedule: fleet.ProviderCheck(),
		plan: a.checkPlanCommand,
		run:  a.checkRunCommand,
		last: func() (any, func(time.Time) string) {
			var r providercheck.Result
			return &r, func(time.Time) string { return checkTable(a.view(), r) }
		},
	})
}

func (a *app) checkRunCommand() *cobra.Command {
	var in providercheck.Input
	cmd := &cobra.Command{
		Use: "run", Short: "Ask them now", Args: exactly(0),
		RunE: func(cmd *cobra.Command, _ []string) error {
			return a.withFleet(cmd.Context(), func(ctx context.Context, f Fleet) error {
				var r providercheck.Result
				if err := f.RunSweep(ctx, fleet.ProviderCheck(), in, &r); err != nil {
					return fmt.Errorf("check: %w", err)
				}
				return a.printOr(r, checkTable(a.view(), r))
			})
		},
	}
	cmd.Flags().StringSliceVar(&in.Providers, "provider", nil, "only these providers")
	return cmd
}

// checkTable shows a target a line, and what has changed since the round before.
func checkTable(v view, r providercheck.Result) string {
	rows := targetHeader()
	for _, h := range r.Providers {
		check := v1.ProviderCheck{Supported: h.Supported, CheckedAt: r.At, Unlisted: h.Unlisted}
		for _, t := range h.Targets {
			check.Targets = append(check.Targets, v1.ProviderTarget{
				Target: t.Target, Ready: t.Ready, Reason: t.Reason, Message: t.Message, Details: t.Details,
			})
		}
		rows = append(rows, targetRows(h.Provider, check, v.now)...)
	}
	var b strings.Builder
	b.WriteString(v.Table("", rows))
	for _, t := range r.Transitions {
		fmt.Fprintf(&b, "\n%s %s: from %s to %s", t.Provider, t.Target, orGone(t.From), orGone(t.To))
	}
	if len(r.Transitions) > 0 {
		b.WriteString("\n")
	}
	return b.String()
}

func orGone(reason string) string {
	if reason == "" {
		return "not there"
	}
	return reason
}

func targetHeader() [][]string {
	return [][]string{{"PROVIDER", "TARGET", "READY", "REASON", "MESSAGE", "AGE"}}
}

// targetRows shows a check, one target a line.
func targetRows(provider string, c v1.ProviderCheck, now time.Time) (rows [][]string) {
	old := age(now, c.CheckedAt)
	if !c.Supported {
		return [][]string{{provider, "", "", "unsupported", "it has no check", old}}
	}
	for _, t := range c.Targets {
		ready := "no"
		if t.Ready {
			ready = "yes"
		}
		rows = append(rows, []string{provider, t.Target, ready, t.Reason, said(t), old})
	}
	if c.Unlisted > 0 {
		rows = append(rows, []string{provider, fmt.Sprintf("and %d more", c.Unlisted), "", "", "", old})
	}
	return rows
}

// said is what a target says of itself, in a line.
func said(t v1.ProviderTarget) string {
	text := oneLine(t.Message)
	for _, key := range slices.Sorted(maps.Keys(t.Details)) {
		text = strings.TrimSpace(text + " " + key + "=" + oneLine(t.Details[key]))
	}
	return text
}
