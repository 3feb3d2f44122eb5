package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/spf13/cobra"
	"github.com/stretchr/testify/require"

	"github.com/egressfleet/egressfleet/activities"
	v1 "github.com/egressfleet/egressfleet/api/v1"
	"github.com/egressfleet/egressfleet/providers"
	"github.com/egressfleet/egressfleet/starter/fleet"
	"github.com/egressfleet/egressfleet/starter/terminal"
	"github.com/egressfleet/egressfleet/testsuite/guides"
	"github.com/egressfleet/egressfleet/workflows/adoption"
	"github.com/egressfleet/egressfleet/workflows/drift"
	"github.com/egressfleet/egressfleet/workflows/gc"
	"github.com/egressfleet/egressfleet/workflows/health"
	"github.com/egressfleet/egressfleet/workflows/openproxy"
	"github.com/egressfleet/egressfleet/workflows/providercheck"
)

var update = flag.Bool("update", false, "write the outputs in docs/cli.md anew")

const (
	cliPage = "../docs/cli.md"
	// cliFiles is the folder that the page's commands are run in.
	cliFiles = "testdata/cli/"
)

// pictured is the fleet of the page.
type pictured struct{ *fakeFleet }

func (pictured) sweep(schedule string) any {
	schedule, _, _ = strings.Cut(schedule, "/") // also one by hand
	return map[string]any{
		gc.Schedule: gc.Result{Sweeps: []gc.Sweep{{SweepReport: activities.SweepReport{
			Provider: "gcp", Listed: 2, Living: 1, Convicts: 1, Deleted: 1,
			Findings: []activities.Finding{{
				ID: "europe-west9-a/proxy-old", Kind: "instance", Owner: "default/old", CreatedAt: noon.Add(-time.Hour),
				Why: "OwnerClosed", Proof: "its workflow is Terminated", Convict: true, Deleted: true,
			}},
		}}}},
		drift.Schedule: drift.Result{Sweeps: []drift.Sweep{{DriftReport: activities.DriftReport{
			Provider: "rack", Running: 1, Listed: 0, Hinted: 1,
			Hints: []activities.Hint{{Proxy: "default/rack-1", ID: "host-a/proxy-1", Reason: "it is not listed"}},
		}}}},
		health.Schedule: health.Result{
			Providers: []health.Provider{
				{Name: "gcp", Tally: activities.Tally{Passed: 1}}, {Name: "rack", Tally: activities.Tally{Failed: 1}},
			},
			Changed: []activities.Change{{Proxy: "default/rack-1", Reason: v1.ReasonRefused, Text: "the proxy answers 403"}},
		},
		providercheck.Schedule: providercheck.Result{At: noon.Add(-20 * time.Second), Providers: []activities.ProviderHealth{
			{Provider: "gcp", Supported: true, Targets: []providers.TargetStatus{
				{Target: "europe-west9-a", Ready: true, Reason: "Ready"},
			}},
			{Provider: "rack", Supported: true, Targets: []providers.TargetStatus{
				{Target: "host-a", Reason: "Unreachable", Message: "no route to host"},
			}},
		}},
		adoption.WorkflowID: adoption.Result{Providers: []adoption.Provider{{AdoptReport: activities.AdoptReport{
			Provider: "gcp", Listed: 3, Living: 1, Adoptable: 1, Adopted: 1, Left: 1, Claims: []activities.Claim{
				{
					ID: "europe-west9-a/proxy-2", Owner: "default/x", CreatedAt: noon.Add(-time.Hour), Why: activities.WhyUnreadable,
					Proof: "spec mark: is no JSON of a spec",
				},
				{
					ID: "europe-west9-a/proxy-1", Owner: "default/paris-3", CreatedAt: noon.Add(-25 * time.Hour),
					CloudInit: activities.CloudInitDigest, Why: activities.WhyAdoptable, Adopt: true, Adopted: true,
					Proof: "there is no workflow of default/paris-3",
				},
			},
		}}}},
		openproxy.Schedule: openproxy.Result{Counts: map[string]activities.Openings{"gcp": {Closed: 1}, "rack": {Closed: 1}}},
	}[schedule]
}

func (p pictured) RunSweep(_ context.Context, s fleet.Schedule, input, result any) error {
	found := p.sweep(s.ID)
	if in, is := input.(gc.Input); is && in.Plan {
		orphans := found.(gc.Result).Sweeps[0]
		orphans.Deleted, orphans.Findings[0].Deleted = 0, false
		found = gc.Result{Sweeps: []gc.Sweep{orphans}}
	}
	if in, is := input.(adoption.Input); is && in.Plan {
		plan := found.(adoption.Result).Providers[0]
		plan.Adopted, plan.Claims[1].Adopted = 0, false
		found = adoption.Result{Providers: []adoption.Provider{plan}}
	}
	raw, err := json.Marshal(found)
	return errors.Join(err, json.Unmarshal(raw, result))
}

func (pictured) PauseSchedule(context.Context, string, string) error  { return nil }
func (pictured) ResumeSchedule(context.Context, string, string) error { return nil }

func (pictured) ScheduleState(_ context.Context, schedule string) (fleet.ScheduleState, error) {
	return fleet.ScheduleState{
		ID: schedule, Every: map[string]time.Duration{
			gc.Schedule: gc.Interval, drift.Schedule: drift.Interval, health.Schedule: health.Interval,
			providercheck.Schedule: providercheck.Interval, openproxy.Schedule: openproxy.Interval,
		}[schedule], LastSuccess: noon.Add(-20 * time.Second), LastRun: noon.Add(-22 * time.Second),
		NextRun: noon.Add(38 * time.Second),
	}, nil
}

func (pictured) LastFailure(context.Context, string) (at time.Time, failure, err error) {
	return time.Time{}, nil, nil
}

func (p pictured) LastResult(_ context.Context, schedule string, result any) (time.Time, error) {
	return noon, p.RunSweep(context.Background(), fleet.Schedule{ID: schedule}, nil, result)
}

func picture() pictured {
	yes, no := true, false
	proxy := func(namespace, name, provider string, status v1.ProxyStatus) v1.Proxy {
		return v1.Proxy{
			Metadata: v1.Metadata{
				Namespace: namespace, Name: name, UID: "0199c2d4", Generation: 1, CreatedAt: noon.Add(-26 * time.Hour),
			},
			Spec: v1.ProxySpec{Provider: provider, Port: 3128}, Status: status,
		}
	}
	condition := func(kind string, status v1.ConditionStatus, reason, message string) v1.Condition {
		return v1.Condition{
			Type: kind, Status: status, Reason: reason, Message: message, LastTransitionTime: noon.Add(-12 * time.Minute),
		}
	}
	made := condition(v1.ConditionProvisioned, v1.ConditionTrue, v1.ReasonCreated, "the instance runs")
	since := noon.Add(-12 * time.Minute)
	all := []v1.Proxy{
		proxy("crawl", "slow-1", "rack", v1.ProxyStatus{Phase: v1.PhaseDeleting, Since: since, Conditions: []v1.Condition{
			condition(v1.ConditionDeleting, v1.ConditionTrue, v1.ReasonInProgress, "the backend is removing the instance"),
		}}),
		proxy("default", "paris-1", "gcp", v1.ProxyStatus{
			Phase: v1.PhaseRunning, IP: "10.1.2.3", EgressIP: "192.0.2.1", ProviderID: "europe-west9-a/proxy-1", Healthy: &yes,
			Since:      since,
			Conditions: []v1.Condition{made, condition(v1.ConditionHealthy, v1.ConditionTrue, v1.ReasonHealthy, "")},
		}),
		proxy("default", "paris-2", "gcp", v1.ProxyStatus{
			Phase: v1.PhasePending, Since: since, NextAttemptAt: noon.Add(4 * time.Minute),
			Conditions: []v1.Condition{condition(v1.ConditionProvisioned, v1.ConditionFalse, v1.ReasonQuotaExceeded,
				"quota CPUS in europe-west9: 24 of 24; next attempt at 2026-01-31T12:04:00Z")},
		}),
		proxy("default", "rack-1", "rack", v1.ProxyStatus{
			Phase: v1.PhaseRunning, IP: "10.9.0.7", ProviderID: "host-a/proxy-1", Healthy: &no, Since: since,
			Conditions: []v1.Condition{
				made, condition(v1.ConditionHealthy, v1.ConditionFalse, v1.ReasonRefused, "the proxy answers 403"),
			},
		}),
	}
	all[1].Metadata.Labels = map[string]string{"team": "crawl"}
	all[1].Spec.Placement.Zone = "europe-west9-a"
	all[1].Spec.CloudInit.SecretRef = &v1.SecretRef{Name: "squid", Key: "conf"}
	all[3].Spec.HealthCheck.ReplaceAfter = "30m"
	for i := range all {
		all[i].Status.ObservedGeneration = 1
	}
	return pictured{&fakeFleet{proxies: all, timeline: []v1.Event{
		{
			At: noon.Add(-20 * time.Minute), Phase: v1.PhaseProvisioning, Reason: v1.ReasonProvisioning,
			Detail: "the backend was asked for an instance",
		},
		{At: since, Phase: v1.PhaseRunning, Reason: v1.ReasonCreated, Detail: "the instance runs at 10.9.0.7"},
	}}}
}

// played runs the commands of a block, and returns it with their outputs. A fence with a
// number is a terminal of that width.
func played(t *testing.T, b guides.Block) string {
	t.Helper()
	width, _ := strconv.Atoi(b.File)
	return playedOn(t, b.Code, terminal.Screen{Width: width})
}

// playedOn runs the lines that begin with a prompt.
func playedOn(t *testing.T, lines string, screen terminal.Screen) string {
	t.Helper()
	code := 0
	var all strings.Builder
	for line := range strings.Lines(lines) {
		command, is := strings.CutPrefix(line, "$ ")
		if !is {
			continue
		}
		all.WriteString(line)
		if command = strings.TrimSpace(command); command == "echo $?" {
			fmt.Fprintln(&all, code)
			continue
		}
		var out bytes.Buffer
		cmd := NewCommand(Streams{
			In: strings.NewReader(""), Out: &out, Err: &out,
			OutScreen: func() terminal.Screen { return screen },
		}, Outside{
			Connect: func(context.Context, Temporal) (Fleet, func(), error) { return picture(), func() {}, nil },
			Now:     func() time.Time { return noon }, Every: never, After: time.After,
		})
		cmd.SetArgs(words(t, command))
		code = ExitCode(&out, cmd.ExecuteContext(t.Context()))
		all.WriteString(strings.ReplaceAll(out.String(), cliFiles, ""))
	}
	return all.String()
}

// words splits a line as a shell does, as far as the page needs it.
func words(t *testing.T, line string) (args []string) {
	t.Helper()
	for i, part := range strings.Split(line, "'") {
		if i%2 == 1 { // in quotes
			args = append(args, part)
			continue
		}
		args = append(args, strings.Fields(part)...)
	}
	require.Equal(t, "starter", args[0], line)
	for i, arg := range args {
		if i > 0 && args[i-1] == "-f" {
			args[i] = cliFiles + arg
		}
	}
	return args[1:]
}

// Every output on the page is what the command prints: go test ./starter -run
// TestThePage -update writes them.
func TestThePageShowsWhatTheCommandsPrint(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile(cliPage)
	require.NoError(t, err)
	is, want := string(text), string(text)
	blocks := 0
	for _, b := range guides.Blocks(is) {
		if b.Language != "console" {
			continue
		}
		blocks++
		fence := strings.TrimSpace("```console "+b.File) + "\n"
		require.Contains(t, want, fence+b.Code)
		want = strings.Replace(want, fence+b.Code, fence+played(t, b), 1)
	}
	require.Greater(t, blocks, 8)
	if *update {
		require.NoError(t, os.WriteFile(cliPage, []byte(want), 0o600))
		return
	}
	require.Equal(t, want, is)
	require.NotContains(t, is, "hunter2")
}

func TestThePageNamesEveryCommandAndEveryExitCode(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile(cliPage)
	require.NoError(t, err)
	page := string(text)
	var visit func(*cobra.Command)
	visit = func(cmd *cobra.Command) {
		if cmd.Runnable() && !cmd.HasSubCommands() && !cmd.Hidden && cmd.Name() != "help" {
			require.Contains(t, page, cmd.CommandPath(), "a command that the page does not show")
		}
		for _, sub := range cmd.Commands() {
			visit(sub)
		}
	}
	visit(NewCommand(Streams{}, Outside{}))
	var rows []string
	for _, m := range exitMeanings() {
		rows = append(rows, fmt.Sprintf("| %d | %s |\n", m.Code, m.Meaning))
	}
	require.Contains(t, page, "| code | means |\n|---|---|\n"+strings.Join(rows, "")+"\n")
	for _, form := range outputs() {
		require.Contains(t, page, "| `"+form+"` |")
	}
}
