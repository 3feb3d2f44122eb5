package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	v1 "github.com/egressfleet/egressfleet/api/v1"
	"github.com/egressfleet/egressfleet/starter/fleet"
	"github.com/egressfleet/egressfleet/workflows/providercheck"
)

// plannedProbe is one proxy of a health round that has not begun.
type plannedProbe struct {
	Proxy   string `json:"proxy"`
	Address string `json:"address,omitempty"`
	Probed  bool   `json:"probed"`
	Why     string `json:"why"` // what is asked for, or why it is left out
}

// healthPlanCommand sends no traffic: it says what a round would probe.
func (a *app) healthPlanCommand() *cobra.Command {
	return &cobra.Command{
		Use: "plan", Short: "Say which proxies a round would probe, and for what they are asked", Args: exactly(0),
		RunE: func(cmd *cobra.Command, _ []string) error {
			return a.withFleet(cmd.Context(), func(ctx context.Context, f Fleet) error {
				ctx, cancel := context.WithTimeout(ctx, callTimeout)
				defer cancel()
				proxies, err := f.List(ctx, "")
				if err != nil {
					return fmt.Errorf("health: %w", err)
				}
				plan := planOf(proxies)
				return a.printOr(plan, planTable(a.view(), plan))
			})
		},
	}
}

// planOf says what a round makes of each proxy. It is pure.
func planOf(proxies []v1.Proxy) []plannedProbe {
	plan := make([]plannedProbe, 0, len(proxies))
	for _, p := range proxies {
		line := plannedProbe{Proxy: p.Metadata.Namespace + "/" + p.Metadata.Name, Address: address(p)}
		switch {
		case p.Spec.HealthCheck.Disabled:
			line.Why = "spec.healthCheck.disabled"
		case p.Status.Phase != v1.PhaseRunning || p.Status.IP == "":
			line.Why = "is " + string(cmp.Or(p.Status.Phase, v1.PhasePending))
		default:
			line.Probed, line.Why = true, cmp.Or(p.Spec.HealthCheck.Target, "the target of provider "+p.Spec.Provider)
		}
		plan = append(plan, line)
	}
	return plan
}

func planTable(v view, plan []plannedProbe) string {
	if len(plan) == 0 {
		return "no proxies\n"
	}
	rows := [][]string{{"PROXY", "ADDRESS", "PROBED", "TARGET, OR WHY NOT"}}
	for _, line := range plan {
		probed := "no"
		if line.Probed {
			probed = "yes"
		}
		rows = append(rows, []string{line.Proxy, line.Address, probed, line.Why})
	}
	return v.Table("", rows)
}

// checkPlanCommand asks no backend: it says what the last round asked, and when the next
// one does.
func (a *app) checkPlanCommand() *cobra.Command {
	return &cobra.Command{
		Use: "plan", Short: "Say which targets the next round asks, as the last one found them", Args: exactly(0),
		RunE: func(cmd *cobra.Command, _ []string) error {
			return a.withFleet(cmd.Context(), func(ctx context.Context, f Fleet) error {
				ctx, cancel := context.WithTimeout(ctx, callTimeout)
				defer cancel()
				state, err := f.ScheduleState(ctx, providercheck.Schedule)
				if err != nil {
					return fmt.Errorf("schedule %s: %w", providercheck.Schedule, absent(providercheck.Schedule, err))
				}
				var r providercheck.Result
				_, err = f.LastResult(ctx, providercheck.Schedule, &r)
				if errors.Is(err, fleet.ErrNoRun) {
					return a.printOr(r, "no round has ended yet; it asks every configured provider\n")
				}
				if err != nil {
					return fmt.Errorf("check: %w", err)
				}
				return a.printOr(r, checkTable(a.view(), r)+"\n"+a.stateText(state))
			})
		},
	}
}
