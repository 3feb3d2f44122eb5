package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/egressfleet/egressfleet/activities"
	"github.com/egressfleet/egressfleet/starter/fleet"
	"github.com/egressfleet/egressfleet/workflows/adoption"
)

const adoptHelp = `Bring the proxies back whose instances go on while their workflows are lost, as after the
loss of Temporal's database: start a workflow for each instance of this installation that
has none, from its marks. It keeps the instance and its UID.

It starts nothing without --yes: it only says what it would adopt, and why not the rest.
It exits with an error where a provider could not be listed, or an instance without an
owner was left. Running it again, or twice at once, adopts nothing twice.

The marks hold placement, port and where the cloud-init comes from; of an inline one its
digest only. Labels, health check and deadlines they do not hold. Apply the specs again
afterwards: that replaces no instance whose spec is the same.`

func (a *app) adoptCommand() *cobra.Command {
	var in adoption.Input
	var yes bool
	cmd := &cobra.Command{
		Use: "adopt", Short: "Bring proxies back from the marks of instances that no workflow owns",
		Long: adoptHelp, Args: exactly(0),
		Example: "  starter adopt\n  starter adopt --provider gcp --yes",
		RunE: func(cmd *cobra.Command, _ []string) error {
			in.Plan = !yes
			return a.withFleet(cmd.Context(), func(ctx context.Context, f Fleet) error { return a.adopt(ctx, f, in) })
		},
	}
	flags := cmd.Flags()
	flags.StringSliceVar(&in.Providers, "provider", nil, "only the instances of these providers")
	flags.BoolVar(&yes, "yes", false, "adopt them; otherwise only say which they are")
	flags.BoolVar(&in.Orphans, "orphans", false,
		"also those that orphan collection would delete, since the workflow of their owner has ended or should be known")
	return cmd
}

func (a *app) adopt(ctx context.Context, f Fleet, in adoption.Input) error {
	var r adoption.Result
	if err := f.RunSweep(ctx, fleet.Adoption(), in, &r); err != nil {
		return fmt.Errorf("adopt: %w", err)
	}
	return errors.Join(a.printOr(r, adoptTable(a.view(), r, in.Plan)), incomplete(r))
}

// incomplete is the error of an adoption after which something may still have no owner.
func incomplete(r adoption.Result) error {
	var faults []error
	for _, p := range r.Providers {
		failed := p.Left
		for _, c := range p.Claims {
			if c.Error != "" {
				failed++
			}
		}
		switch {
		case p.Fault != nil:
			faults = append(faults, fmt.Errorf("adopt: incomplete: %s was skipped: %s", p.Provider, oneLine(p.Fault.Text)))
		case len(p.Omitted) > 0:
			faults = append(faults, fmt.Errorf("adopt: incomplete: %s could not list %s", p.Provider,
				strings.Join(p.Omitted, ", ")))
		}
		if failed > 0 {
			faults = append(faults, fmt.Errorf("adopt: incomplete: %s: instances without an owner that could not be adopted: %d",
				p.Provider, failed))
		}
	}
	return errors.Join(faults...)
}

// adoptTable shows what was counted, and each instance with what becomes of it.
func adoptTable(v view, r adoption.Result, plan bool) string {
	rows := [][]string{{"PROVIDER", "LISTED", "LIVING", "ADOPTABLE", "ADOPTED", "LEFT", "ORPHANS"}}
	var claims [][]string
	var notes strings.Builder
	adoptable := 0
	for _, p := range r.Providers {
		adoptable += p.Adoptable
		rows = append(rows, []string{
			p.Provider, strconv.Itoa(p.Listed), strconv.Itoa(p.Living), strconv.Itoa(p.Adoptable),
			strconv.Itoa(p.Adopted), strconv.Itoa(p.Left), strconv.Itoa(p.Orphans),
		})
		for _, c := range p.Claims {
			claims = append(claims, []string{
				destiny(c, plan), cmp.Or(c.Owner, "-"), c.ID, age(v.now, c.CreatedAt), cmp.Or(c.CloudInit, "-"), c.Why,
				oneLine(cmp.Or(c.Error, c.Proof)),
			})
		}
		if p.Unlisted > 0 {
			fmt.Fprintf(&notes, "\n%s: %d more are not listed\n", p.Provider, p.Unlisted)
		}
	}
	text := v.Table("", rows)
	if len(claims) > 0 {
		text += "\n" + v.Table("", append([][]string{{"", "PROXY", "ID", "AGE", "CLOUD-INIT", "WHY", "PROOF"}}, claims...))
	}
	if plan && adoptable > 0 {
		fmt.Fprintf(&notes, "\nnothing was adopted; --yes adopts these, %d in all\n", adoptable)
	}
	return text + notes.String()
}

// destiny is what becomes of an instance, in a word.
func destiny(c activities.Claim, plan bool) string {
	switch {
	case c.Adopted:
		return "adopted"
	case c.Error != "":
		return "failed"
	case c.Adopt && plan:
		return "adopt"
	default:
		return "kept"
	}
}
