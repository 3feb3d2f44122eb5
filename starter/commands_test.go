package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	v1 "github.com/egressfleet/egressfleet/api/v1"
	"github.com/egressfleet/egressfleet/starter/fleet"
)

// fakeFleet answers from a list and records what was asked.
type fakeFleet struct {
	proxies  []v1.Proxy
	timeline []v1.Event
	noWorker bool
	stuck    bool // WaitGone never returns
	asked    []string
	requests map[string]bool
}

func (f *fakeFleet) Apply(_ context.Context, p v1.Proxy, requestID string) (v1.Proxy, bool, error) {
	f.asked = append(f.asked, "apply "+p.Metadata.Namespace+"/"+p.Metadata.Name)
	if f.requests == nil {
		f.requests = map[string]bool{}
	}
	f.requests[requestID] = true
	for _, is := range f.proxies {
		if is.Metadata.Name == p.Metadata.Name && is.Spec.Provider != p.Spec.Provider {
			return v1.Proxy{}, false, &fleet.ConflictError{
				Field: "spec.provider", Value: p.Spec.Provider, Problem: "never changes",
			}
		}
		if is.Metadata.Name == p.Metadata.Name {
			return is, false, nil
		}
	}
	return p, true, nil
}

func (f *fakeFleet) Get(_ context.Context, namespace, name string) (v1.Proxy, error) {
	for _, p := range f.proxies {
		if p.Metadata.Namespace == namespace && p.Metadata.Name == name {
			return p, nil
		}
	}
	return v1.Proxy{}, fmt.Errorf("%w: %s/%s", fleet.ErrNotFound, namespace, name)
}

func (f *fakeFleet) Delete(ctx context.Context, namespace, name, reason string) (v1.Proxy, error) {
	f.asked = append(f.asked, "delete "+namespace+"/"+name+" because "+reason)
	return f.Get(ctx, namespace, name)
}

func (f *fakeFleet) List(_ context.Context, namespace string) ([]v1.Proxy, error) {
	return slices.DeleteFunc(slices.Clone(f.proxies), func(p v1.Proxy) bool {
		return namespace != "" && p.Metadata.Namespace != namespace
	}), nil
}

func (f *fakeFleet) Timeline(context.Context, string, string) ([]v1.Event, error) {
	if f.noWorker {
		return nil, fleet.ErrUnavailable
	}
	return f.timeline, nil
}

func (f *fakeFleet) WaitGone(ctx context.Context, namespace, name string) error {
	f.asked = append(f.asked, "wait for "+namespace+"/"+name)
	if f.stuck {
		<-ctx.Done()
		return ctx.Err()
	}
	return nil
}

// fleetOfThree has one that runs, one that waits for quota and one elsewhere.
func fleetOfThree() *fakeFleet {
	runs := v1.Proxy{
		Metadata: v1.Metadata{
			Namespace: "default", Name: "runs", UID: "0199c2d4", Generation: 2,
			CreatedAt: noon.Add(-90 * time.Minute), Labels: map[string]string{"team": "a", "env": "b"},
		},
		Spec: v1.ProxySpec{
			Provider: "gcp", Port: 3128, Placement: v1.Placement{Region: "europe-west1", Zone: "europe-west1-b"},
			CloudInit: v1.CloudInit{Inline: "password: hunter2"},
		},
		Status: v1.ProxyStatus{
			Phase: v1.PhaseRunning, ProviderID: "europe-west1-b/proxy-x", IP: "10.1.2.3", EgressIP: "192.0.2.1",
			ObservedGeneration: 2, Since: noon.Add(-time.Hour), InstanceCreatedAt: noon.Add(-89 * time.Minute), Held: true,
			Conditions: []v1.Condition{
				{
					Type: v1.ConditionProvisioned, Status: v1.ConditionTrue, Reason: v1.ReasonCreated,
					LastTransitionTime: noon.Add(-time.Hour),
				},
				{
					Type: v1.ConditionHealthy, Status: v1.ConditionFalse, Reason: v1.ReasonRefused,
					Message: "the proxy says\n 403", LastTransitionTime: noon.Add(-time.Minute),
				},
			},
		},
	}
	waits := v1.Proxy{
		Metadata: v1.Metadata{Namespace: "default", Name: "waits", Generation: 1, CreatedAt: noon.Add(-49 * time.Hour)},
		Spec:     v1.ProxySpec{Provider: "gcp", Port: 3128},
		Status: v1.ProxyStatus{
			Phase: v1.PhasePending, NextAttemptAt: noon.Add(4 * time.Minute),
			Conditions: []v1.Condition{
				{Type: v1.ConditionProvisioned, Status: v1.ConditionFalse, Reason: v1.ReasonQuotaExceeded, Message: "no more"},
			},
		},
	}
	elsewhere := v1.Proxy{
		Metadata: v1.Metadata{Namespace: "crawl", Name: "six", CreatedAt: noon.Add(-5 * time.Second)},
		Spec:     v1.ProxySpec{Provider: "local", Port: 80}, Status: v1.ProxyStatus{Phase: v1.PhaseRunning, IP: "fd00::1"},
	}
	return &fakeFleet{proxies: []v1.Proxy{runs, waits, elsewhere}}
}

func TestGetShowsATable(t *testing.T) {
	t.Parallel()
	out, errOut, code := run(t.Context(), fleetOfThree(), "", "get")
	require.Equal(t, `NAME   PROVIDER  PHASE    ADDRESS        REASON         AGE
runs   gcp       Running  10.1.2.3:3128  Refused        1h
waits  gcp       Pending  -              QuotaExceeded  2d
`, out)
	require.Empty(t, errOut)
	require.Zero(t, code)
}

func TestGetShowsEveryNamespace(t *testing.T) {
	t.Parallel()
	out, _, code := run(t.Context(), fleetOfThree(), "", "get", "-A")
	require.Zero(t, code)
	require.Contains(t, out, "NAMESPACE  NAME ")
	require.Contains(t, out, "crawl      six    local     Running  [fd00::1]:80   -              5s\n")
}

func TestGetByNameGoesOnAfterOneThatIsNotThere(t *testing.T) {
	t.Parallel()
	out, errOut, code := run(t.Context(), fleetOfThree(), "", "get", "nobody", "waits")
	require.Contains(t, out, "waits  gcp")
	require.NotContains(t, out, "runs")
	require.Equal(t, "starter: get default/nobody: no such proxy: default/nobody\n", errOut)
	require.Equal(t, exitFailure, code)
}

func TestGetAnEmptyNamespace(t *testing.T) {
	t.Parallel()
	out, _, code := run(t.Context(), fleetOfThree(), "", "get", "-n", "empty")
	require.Equal(t, "no proxies\n", out)
	require.Zero(t, code)
	out, _, _ = run(t.Context(), fleetOfThree(), "", "get", "-n", "empty", "-o", "json")
	require.JSONEq(t, `{"items": []}`, out)
}

func TestNoOutputHoldsUserData(t *testing.T) {
	t.Parallel()
	for _, args := range [][]string{
		{"get", "-o", "json"},
		{"get", "-o", "yaml"},
		{"get", "runs", "-o", "json"},
		{"describe", "runs"},
		{"describe", "runs", "-o", "json"},
		{"describe", "runs", "-o", "yaml"},
	} {
		t.Run(strings.Join(args, " "), func(t *testing.T) {
			t.Parallel()
			out, _, code := run(t.Context(), fleetOfThree(), "", args...)
			require.Zero(t, code)
			require.Contains(t, out, "0199c2d4")
			require.NotContains(t, out, "hunter2")
		})
	}
}

func TestWhatGetPrintsCanBeApplied(t *testing.T) {
	t.Parallel()
	text, _, _ := run(t.Context(), fleetOfThree(), "", "get", "-A", "-o", "yaml")
	f := &fakeFleet{}
	out, errOut, code := run(t.Context(), f, text, "apply", "-f", "-")
	require.Zero(t, code, errOut)
	require.Equal(t, "default/runs created\ndefault/waits created\ncrawl/six created\n", out)
}

func TestDescribeIsReadable(t *testing.T) {
	t.Parallel()
	f := fleetOfThree()
	f.timeline = []v1.Event{
		{
			At: noon.Add(-89 * time.Minute), Phase: v1.PhaseProvisioning, Reason: "TransientError",
			Class: "Transient", Detail: "try\nagain",
		},
		{At: noon.Add(-time.Hour), Phase: v1.PhaseRunning, Reason: "Created"},
	}
	out, _, code := run(t.Context(), f, "", "describe", "runs")
	require.Zero(t, code)
	golden(t, "describe.txt", out)
}

func TestDescribeSaysWhenTheNextAttemptIs(t *testing.T) {
	t.Parallel()
	out, _, _ := run(t.Context(), fleetOfThree(), "", "describe", "waits")
	require.Contains(t, out, "Next attempt:  2026-01-31 12:04:00 UTC, in 4m\n")
	require.Contains(t, out, "  Provisioned  False   QuotaExceeded  -    no more\n")
	require.Contains(t, out, "Timeline:\n  nothing yet\n")
}

func TestDescribeWithoutAWorkerShowsWhatItCan(t *testing.T) {
	t.Parallel()
	f := fleetOfThree()
	f.noWorker = true
	out, errOut, code := run(t.Context(), f, "", "describe", "runs")
	require.Contains(t, out, "Running for 1h")
	require.Contains(t, out, "Timeline:\n  not to be had\n")
	require.Contains(t, errOut, "starter: timeline: the fleet is unavailable")
	require.Equal(t, exitFailure, code)
}

const twoProxies = `metadata: {name: new}
spec: {provider: local, port: 1}
---
metadata: {name: waits}
spec: {provider: gcp, port: 1}
`

func TestApplySaysWhatItDid(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "two.yaml")
	require.NoError(t, os.WriteFile(file, []byte(twoProxies), 0o600))
	f := fleetOfThree()
	out, errOut, code := run(t.Context(), f, "", "apply", "-f", file)
	require.Equal(t, "default/new created\ndefault/waits applied\n", out)
	require.Empty(t, errOut)
	require.Zero(t, code)
	require.Len(t, f.requests, 2, "every Proxy is a request of its own")
}

func TestApplyGoesOnAfterARefusal(t *testing.T) {
	t.Parallel()
	f := fleetOfThree()
	out, errOut, code := run(t.Context(), f,
		"metadata: {name: runs}\nspec: {provider: local, port: 1}\n---\n"+twoProxies, "apply", "-f", "-")
	require.Equal(t, "default/new created\ndefault/waits applied\n", out)
	require.Equal(t, "starter: apply default/runs: spec.provider: \"local\" never changes\n", errOut)
	require.Equal(t, exitFailure, code)
}

func TestApplyReadsEveryFileBeforeItAppliesOne(t *testing.T) {
	t.Parallel()
	f := fleetOfThree()
	_, errOut, code := run(t.Context(), f, twoProxies, "apply", "-f", "-", "-f", "/nowhere.yaml")
	require.Contains(t, errOut, "/nowhere.yaml")
	require.Equal(t, exitFailure, code)
	require.Empty(t, f.asked)
}

func TestApplyUsesTheNamespaceThatIsGiven(t *testing.T) {
	t.Parallel()
	f := fleetOfThree()
	_, _, code := run(t.Context(), f, twoProxies, "apply", "-n", "crawl", "-f", "-")
	require.Zero(t, code)
	require.Equal(t, []string{"apply crawl/new", "apply crawl/waits"}, f.asked)

	_, errOut, code := run(t.Context(), f,
		"metadata: {name: a, namespace: other}\nspec: {provider: a, port: 1}\n", "apply", "-n", "crawl", "-f", "-")
	require.Equal(t, exitUsage, code)
	require.Contains(t, errOut, `metadata.namespace: "other" of "a" is not the namespace that -n names, "crawl"`)
}

func TestDeleteAsksForAllBeforeItWaits(t *testing.T) {
	t.Parallel()
	f := fleetOfThree()
	out, errOut, code := run(t.Context(), f, "", "delete", "runs", "nobody", "waits", "--wait", "--reason", "banned")
	require.Equal(t, []string{
		"delete default/runs because banned", "delete default/nobody because banned",
		"delete default/waits because banned", "wait for default/runs", "wait for default/waits",
	}, f.asked)
	require.Equal(t, "default/runs is gone\ndefault/waits is gone\n", out)
	require.Equal(t, "starter: delete default/nobody: no such proxy: default/nobody\n", errOut)
	require.Equal(t, exitFailure, code)
}

func TestDeleteWithoutWaitReturnsAtOnce(t *testing.T) {
	t.Parallel()
	f := fleetOfThree()
	out, _, code := run(t.Context(), f, "", "delete", "runs")
	require.Equal(t, "default/runs is being deleted\n", out)
	require.Zero(t, code)
	require.Equal(t, []string{"delete default/runs because starter delete"}, f.asked)
}

func TestDeletePrintsObjectsWhereTheyAreAskedFor(t *testing.T) {
	t.Parallel()
	for _, more := range [][]string{{"-o", "json"}, {"-o", "yaml"}, {"-o", "json", "--wait"}} {
		out, errOut, code := run(t.Context(), fleetOfThree(), "", append([]string{"delete", "runs"}, more...)...)
		require.Zero(t, code, errOut)
		require.Contains(t, out, "0199c2d4")
		require.NotContains(t, out, "is being deleted")
		require.NotContains(t, out, "is gone")
		require.NotContains(t, out, "hunter2")
	}
}

func TestDeleteStopsWaiting(t *testing.T) {
	t.Parallel()
	f := fleetOfThree()
	f.stuck = true
	_, errOut, code := run(t.Context(), f, "", "delete", "runs", "--wait", "--timeout", "10ms")
	require.Contains(t, errOut, "default/runs is still being deleted after 10ms")
	require.Equal(t, exitFailure, code)
}

func TestWrongCommandLines(t *testing.T) {
	t.Parallel()
	for want, args := range map[string][]string{
		`"frob" is no command`:                       {"frob"},
		`--output: "xml" is neither`:                 {"get", "-o", "xml"},
		"unknown flag: --frob":                       {"get", "--frob"},
		"starter apply: -f FILE is required":         {"apply"},
		"starter apply: accepts 0 arg(s)":            {"apply", "-f", "-", "x"},
		"starter describe: accepts 1 arg(s)":         {"describe"},
		"starter delete: requires at least 1 arg(s)": {"delete"},
		`--timeout: "0s" is not longer than nothing`: {"delete", "a", "--timeout", "0s"},
		"-A takes no name":                           {"get", "-A", "a"},
		"starter dev: accepts 0 arg(s)":              {"dev", "now"},
		"starter dev clean: accepts 0 arg(s)":        {"dev", "clean", "all"},
	} {
		t.Run(want, func(t *testing.T) {
			t.Parallel()
			_, errOut, code := run(t.Context(), fleetOfThree(), "", args...)
			require.Contains(t, errOut, want)
			require.Equal(t, exitUsage, code)
		})
	}
}

func TestVersionIsALine(t *testing.T) {
	t.Parallel()
	out, _, code := run(t.Context(), nil, "", "version")
	require.NotEmpty(t, strings.TrimSpace(out))
	require.Equal(t, 1, strings.Count(out, "\n"))
	require.Zero(t, code)
}

func TestAFleetThatCannotBeReachedIsAFailure(t *testing.T) {
	t.Parallel()
	var out strings.Builder
	cmd := NewCommand(Streams{In: strings.NewReader(""), Out: &out, Err: &out}, Outside{
		Connect: func(context.Context, Temporal) (Fleet, func(), error) { return nil, nil, errors.New("nobody there") },
		Now:     time.Now,
	})
	cmd.SetArgs([]string{"get"})
	require.Equal(t, exitFailure, ExitCode(&out, cmd.ExecuteContext(t.Context())))
	require.Equal(t, "starter: nobody there\n", out.String())
}

// golden compares with a file in testdata.
func golden(t *testing.T, name, got string) {
	t.Helper()
	want, err := os.ReadFile(filepath.Join("testdata", name))
	require.NoError(t, err)
	require.Equal(t, string(want), got)
}
