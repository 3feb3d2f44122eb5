// Package providercheck is the workflow that asks every provider whether its backend
// could be used right now. It tells what changed since the run before. It may import
// api/v1, activities and the provider contract. Start reading at Run.
package providercheck

import (
	"fmt"
	"strings"
	"time"

	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"

	"github.com/egressfleet/egressfleet/activities"
	"github.com/egressfleet/egressfleet/providers"
)

// Names on the wire.
const (
	WorkflowType = "ProviderCheck"
	// Schedule is the ID of its schedule, and what the IDs of its runs begin with.
	Schedule = "provider-check"
)

const (
	// Interval is how often the schedule runs it.
	Interval = 2 * time.Minute
	// Within bounds one run.
	Within = 2 * time.Minute

	attempt = 45 * time.Second
	total   = 90 * time.Second
)

// Input says which providers to check; all that are configured, unless set.
type Input struct {
	Providers []string `json:"providers,omitempty"`
}

// Result is what the checks found.
type Result struct {
	At          time.Time                   `json:"at"`
	Providers   []activities.ProviderHealth `json:"providers"`
	Transitions []Transition                `json:"transitions,omitempty"`
}

// Transition is a target that is not as it was at the run before.
type Transition struct {
	Provider string `json:"provider"`
	Target   string `json:"target"`
	From     string `json:"from,omitempty"` // a reason; empty for a target that is new
	To       string `json:"to,omitempty"`   // empty for one that is there no more
	Message  string `json:"message,omitempty"`
}

var hands *activities.Checks // nil on purpose: only its method names are used

// Run checks every provider once.
func Run(ctx workflow.Context, in Input) (Result, error) {
	ctx = workflow.WithActivityOptions(ctx, workflow.ActivityOptions{
		// No heartbeat: a round is bounded by itself, and one provider that hangs must not
		// take the answers of the others along.
		StartToCloseTimeout: attempt, ScheduleToCloseTimeout: total, Summary: "check every provider",
		Priority: temporal.Priority{PriorityKey: activities.PriorityRead},
	})
	r := Result{}
	if err := workflow.ExecuteActivity(ctx, hands.CheckProviders, in.Providers).Get(ctx, &r.Providers); err != nil {
		return r, err
	}
	r.At = workflow.Now(ctx)
	var before Result
	if workflow.HasLastCompletionResult(ctx) && workflow.GetLastCompletionResult(ctx, &before) == nil {
		r.Transitions = transitions(before.Providers, r.Providers)
	}
	for _, t := range r.Transitions {
		workflow.GetLogger(ctx).Info("a provider's target changed", "provider", t.Provider, "target", t.Target,
			"from", t.From, "to", t.To, "message", t.Message)
	}
	workflow.SetCurrentDetails(ctx, r.Markdown())
	return r, nil
}

// transitions compares two rounds, in the order of the later one; what is gone comes
// last. It is pure.
func transitions(before, now []activities.ProviderHealth) (out []Transition) {
	was, order := reasons(before)
	is, _ := reasons(now)
	for _, h := range now {
		for _, t := range h.Targets {
			key := [2]string{h.Provider, t.Target}
			if from := was[key]; from != t.Reason {
				out = append(out, Transition{h.Provider, t.Target, from, t.Reason, t.Message})
			}
		}
	}
	for _, key := range order {
		if _, there := is[key]; !there {
			out = append(out, Transition{Provider: key[0], Target: key[1], From: was[key]})
		}
	}
	return out
}

func reasons(round []activities.ProviderHealth) (of map[[2]string]string, order [][2]string) {
	of = map[[2]string]string{}
	for _, h := range round {
		for _, t := range h.Targets {
			key := [2]string{h.Provider, t.Target}
			of[key], order = t.Reason, append(order, key)
		}
	}
	return of, order
}

// Markdown is what a person reads in the Web UI.
func (r Result) Markdown() string {
	var b strings.Builder
	b.WriteString("| provider | target | | reason | |\n|---|---|---|---|---|\n")
	for _, h := range r.Providers {
		if !h.Supported {
			fmt.Fprintf(&b, "| %s | | | unsupported | it has no check |\n", h.Provider)
		}
		for _, t := range h.Targets {
			fmt.Fprintf(&b, "| %s | %s | %s | %s | %s |\n", h.Provider, t.Target, ready(t), t.Reason,
				strings.NewReplacer("|", "\\|", "\n", " ").Replace(t.Message))
		}
	}
	return b.String()
}

func ready(t providers.TargetStatus) string {
	if t.Ready {
		return "ready"
	}
	return "**not ready**"
}
