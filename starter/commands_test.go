package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
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
	Sweeps   // none of these tests asks about one
	proxies  []v1.Proxy
	timeline []v1.Event
	noWorker bool
	stuck    bool             // WaitGone never returns
	left     *fleet.LeftError // what WaitGone returns
	asked    []string
	requests map[string]bool
}

func (f *fakeFleet) Apply(
	_ context.Context, p v1.Proxy, r fleet.Request,
) (v1.Proxy, bool, error) {
	f.asked = append(f.asked, "apply "+p.Metadata.Namespace+"/"+p.Metadata.Name)
	if f.requests == nil {
		f.requests = map[string]bool{}
	}
	f.requests[r.ID] = true
	for _, is := range f.proxies {
		if is.Metadata.Name == p.Metadata.Name && is.Metadata.Namespace == p.Metadata.Namespace &&
			is.Spec.Provider != p.Spec.Provider {
			return v1.Proxy{}, false, &fleet.ConflictError{
				Field: "spec.provider", Value: p.Spec.Provider, Problem: "never changes",
			}
		}
		if is.Metadata.Name == p.Metadata.Name && is.Metadata.Namespace == p.Metadata.Namespace {
			if !reflect.DeepEqual(is.Spec, p.Spec) {
				is.Metadata.Generation++
			}
			is.Spec, is.Metadata.Labels = p.Spec, p.Metadata.Labels
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

func (f *fakeFleet) Delete(
	ctx context.Context, namespace, name, reason string, _ fleet.Request,
) (v1.Proxy, error) {
	f.asked = append(f.asked, "delete "+namespace+"/"+name+" because "+reason)
	return f.Get(ctx, namespace, name)
}

func (f *fakeFleet) LeaveBehind(
	ctx context.Context, namespace, name, reason string, _ fleet.Request,
) (v1.Proxy, error) {
	f.asked = append(f.asked, "leave "+namespace+"/"+name+" because "+reason)
	return f.Get(ctx, namespace, name)
}

func (f *fakeFleet) Replace(
	ctx context.Context, namespace, name, reason string, r fleet.Request,
) (v1.Proxy, error) {
	return f.tell(ctx, namespace, name, "replace", reason, r.ID)
}

func (f *fakeFleet) Retry(
	ctx context.Context, namespace, name, reason string, r fleet.Request,
) (v1.Proxy, error) {
	return f.tell(ctx, namespace, name, "retry", reason, r.ID)
}

func (f *fakeFleet) Hold(
	ctx context.Context, namespace, name string, h v1.Hold, r fleet.Request,
) (v1.Proxy, error) {
	return f.tell(ctx, namespace, name, "hold for "+string(h.For), h.Reason, r.ID)
}

func (f *fakeFleet) Resume(
	ctx context.Context, namespace, name, reason string, r fleet.Request,
) (v1.Proxy, error) {
	return f.tell(ctx, namespace, name, "resume", reason, r.ID)
}

func (f *fakeFleet) tell(ctx context.Context, namespace, name, verb, reason, id string) (v1.Proxy, error) {
	f.asked = append(f.asked, verb+" "+namespace+"/"+name+" because "+reason)
	if f.requests == nil {
		f.requests = map[string]bool{}
	}
	f.requests[id] = true
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
	if f.left != nil {
		return f.left
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
	require.Equal(t, exitNotFound, code)
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
	require.Equal(t, exitUnavailable, code)
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

func TestApplySaysWhatItDidNotChange(t *testing.T) {
	t.Parallel()
	f := fleetOfThree()
	for label, want := range map[string]string{
		"":                      "default/waits unchanged\n",
		", labels: {team: new}": "default/waits applied\n",
	} {
		out, errOut, code := run(t.Context(), f,
			"metadata: {name: waits"+label+"}\nspec: {provider: gcp, port: 3128}\n", "apply", "-f", "-")
		require.Zero(t, code, errOut)
		require.Equal(t, want, out)
	}
}

func TestApplyRefusesAProxyThatIsThereTwice(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "two.yaml")
	require.NoError(t, os.WriteFile(file, []byte(twoProxies), 0o600))
	const again = `{"items": [{"metadata": {"name": "other"}, "spec": {"provider": "local", "port": 1}},
		{"metadata": {"name": "waits"}, "spec": {"provider": "local", "port": 2}}]}`
	for name, c := range map[string]struct {
		stdin, want string
		files       []string
	}{
		"in one file": {
			twoProxies + "---\n" + twoProxies, `standard input: document 3: metadata.name: "new" of namespace "default" ` +
				"is there twice; first in standard input: document 1", []string{"-"},
		},
		"in two files": {
			again, `standard input: document 1: items[1]: metadata.name: "waits" of namespace "default" ` +
				"is there twice; first in " + file + ": document 2", []string{file, "-"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := fleetOfThree()
			args := []string{"apply"}
			for _, file := range c.files {
				args = append(args, "-f", file)
			}
			_, errOut, code := run(t.Context(), f, c.stdin, args...)
			require.Equal(t, "starter: "+c.want+"\n", errOut)
			require.Equal(t, exitFailure, code)
			require.Empty(t, f.asked, "nothing was applied")
		})
	}
	f := fleetOfThree()
	_, errOut, code := run(t.Context(), f, twoProxies+"---\nmetadata: {name: new, namespace: crawl}\n"+
		"spec: {provider: local, port: 1}\n", "apply", "-f", "-")
	require.Zero(t, code, errOut, "a name counts together with its namespace")
}

func TestApplyGoesOnAfterARefusal(t *testing.T) {
	t.Parallel()
	f := fleetOfThree()
	out, errOut, code := run(t.Context(), f,
		"metadata: {name: runs}\nspec: {provider: local, port: 1}\n---\n"+twoProxies, "apply", "-f", "-")
	require.Equal(t, "default/new created\ndefault/waits applied\n", out)
	require.Equal(t, "starter: apply default/runs: spec.provider: \"local\" never changes\n", errOut)
	require.Equal(t, exitConflict, code)
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
	require.Equal(t, exitNotFound, code)
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

func TestDeleteThatLeavesSaysWhat(t *testing.T) {
	t.Parallel()
	f := fleetOfThree()
	f.left = &fleet.LeftError{Left: "instance x on provider gcp", Reason: "the zone is gone"}
	out, errOut, code := run(t.Context(), f, "",
		"delete", "runs", "nobody", "--skip-cleanup", "--reason", "the zone is gone")
	require.Equal(t, []string{
		"leave default/runs because the zone is gone", "leave default/nobody because the zone is gone",
		"wait for default/runs",
	}, f.asked)
	require.Equal(t,
		"default/runs has ended: instance x on provider gcp is left behind, not verified (the zone is gone)\n", out)
	require.Equal(t, "starter: delete default/nobody: no such proxy: default/nobody\n", errOut)
	require.Equal(t, exitNotFound, code)

	f = fleetOfThree()
	out, errOut, code = run(t.Context(), f, "", "delete", "runs", "--skip-cleanup", "--reason", "why not")
	require.Zero(t, code, errOut)
	require.Equal(t, "default/runs has ended: nothing is left\n", out)
}

func TestDeleteThatLeavesPrintsTheProxyAsItEnded(t *testing.T) {
	t.Parallel()
	f := fleetOfThree()
	last := f.proxies[0]
	last.Status.SetCondition(noon, v1.Condition{
		Type: v1.ConditionDeleting, Status: v1.ConditionTrue, Reason: v1.ReasonLeftBehind, Message: "instance x is left",
	})
	f.left = &fleet.LeftError{Proxy: last, Left: "instance x on provider gcp", Reason: "why not"}
	out, errOut, code := run(t.Context(), f, "", "delete", "runs", "--skip-cleanup", "--reason", "why not", "-o", "json")
	require.Zero(t, code, errOut)
	var p v1.Proxy
	require.NoError(t, json.Unmarshal([]byte(out), &p))
	c, _ := p.Status.Condition(v1.ConditionDeleting)
	require.Equal(t, v1.ReasonLeftBehind, c.Reason)
	require.NotContains(t, out, "hunter2")
}

func TestDeleteWithoutCleanupStopsWaiting(t *testing.T) {
	t.Parallel()
	f := fleetOfThree()
	f.stuck = true
	out, errOut, code := run(t.Context(), f, "",
		"delete", "runs", "--skip-cleanup", "--reason", "why not", "--timeout", "10ms")
	require.Empty(t, out, "nothing is known of what is left")
	require.Contains(t, errOut, "default/runs has not ended after 10ms")
	require.Equal(t, exitTimeout, code)
}

func TestWaitingForADeleteThatLeavesIsNoSuccess(t *testing.T) {
	t.Parallel()
	f := fleetOfThree()
	f.left = &fleet.LeftError{Left: "instance x on provider gcp", Reason: "somebody else's"}
	out, errOut, code := run(t.Context(), f, "", "delete", "runs", "--wait")
	require.Empty(t, out)
	require.Equal(t, "starter: wait for default/runs: "+
		"instance x on provider gcp is left behind, not verified (somebody else's)\n", errOut)
	require.Equal(t, exitFailure, code)
}

func TestDeleteTellsWhatToDoAboutAStuckOne(t *testing.T) {
	t.Parallel()
	help, _, code := run(t.Context(), nil, "", "delete", "--help")
	require.Zero(t, code)
	require.Contains(t, help, "--skip-cleanup --reason WHY ends the proxy all the same")
	f := fleetOfThree()
	f.stuck = true
	_, errOut, _ := run(t.Context(), f, "", "delete", "runs", "--wait", "--timeout", "10ms")
	require.Contains(t, errOut, "starter delete --help")
}

func TestMessagesSayWhatTheyDid(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		args        []string
		asked, said string
	}{
		"replace": {[]string{"replace", "--reason", "banned"}, "replace default/%s because banned", "is being replaced"},
		"retry":   {[]string{"retry"}, "retry default/%s because starter retry", "is tried again"},
		"hold": {
			[]string{"hold", "--for", "1h", "--reason", "billing"}, "hold for 1h default/%s because billing", "is held for 1h",
		},
		"hold on": {[]string{"hold"}, "hold for  default/%s because starter hold", "is held until it is resumed"},
		"resume":  {[]string{"resume"}, "resume default/%s because starter resume", "is not held any more"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := fleetOfThree()
			out, errOut, code := run(t.Context(), f, "", append(c.args, "runs", "nobody", "waits")...)
			require.Equal(t, "default/runs "+c.said+"\ndefault/waits "+c.said+"\n", out)
			require.Equal(t, "starter: "+c.args[0]+" default/nobody: no such proxy: default/nobody\n", errOut)
			require.Equal(t, exitNotFound, code)
			var asked []string
			for _, name := range []string{"runs", "nobody", "waits"} {
				asked = append(asked, fmt.Sprintf(c.asked, name))
			}
			require.Equal(t, asked, f.asked)
			require.Len(t, f.requests, 3, "every message is a request of its own")

			for _, form := range []string{"json", "yaml"} {
				out, errOut, code = run(t.Context(), fleetOfThree(), "", append(c.args, "runs", "-o", form)...)
				require.Zero(t, code, errOut)
				require.Contains(t, out, "0199c2d4")
				require.NotContains(t, out, c.said)
				require.NotContains(t, out, "hunter2")
			}
		})
	}
}

func TestTimelineIsReadable(t *testing.T) {
	t.Parallel()
	f := fleetOfThree()
	out, _, code := run(t.Context(), f, "", "timeline", "runs")
	require.Zero(t, code)
	require.Equal(t, "nothing yet\n", out)
	out, _, _ = run(t.Context(), f, "", "timeline", "runs", "-o", "json")
	require.JSONEq(t, `{"items": []}`, out)
	f.timeline = []v1.Event{
		{
			At: noon.Add(-time.Hour), Phase: v1.PhasePending, Reason: "TransientError",
			Class: "Transient", Detail: "try\nagain",
		},
		{At: noon, Phase: v1.PhaseRunning, Reason: "Created"},
	}
	out, _, code = run(t.Context(), f, "", "timeline", "runs")
	require.Zero(t, code)
	require.Equal(t, `AT                   PHASE    REASON          CLASS      DETAIL
2026-01-31 11:00:00  Pending  TransientError  Transient  try again
2026-01-31 12:00:00  Running  Created         -          -
`, out)
	out, _, _ = run(t.Context(), f, "", "timeline", "runs", "-o", "json")
	require.JSONEq(t, `{"items": [
		{"at": "2026-01-31T11:00:00Z", "phase": "Pending", "reason": "TransientError", "class": "Transient",
			"detail": "try\nagain"},
		{"at": "2026-01-31T12:00:00Z", "phase": "Running", "reason": "Created"}]}`, out)
	out, _, _ = run(t.Context(), f, "", "timeline", "runs", "-o", "yaml")
	require.Contains(t, out, "items:\n- at: \"2026-01-31T11:00:00Z\"\n")
	f.noWorker = true
	out, errOut, code := run(t.Context(), f, "", "timeline", "runs")
	require.Empty(t, out)
	require.Equal(t, "starter: timeline default/runs: the fleet is unavailable\n", errOut)
	require.Equal(t, exitUnavailable, code)
}

func TestDeleteStopsWaiting(t *testing.T) {
	t.Parallel()
	f := fleetOfThree()
	f.stuck = true
	_, errOut, code := run(t.Context(), f, "", "delete", "runs", "--wait", "--timeout", "10ms")
	require.Contains(t, errOut, "default/runs is still being deleted after 10ms")
	require.Equal(t, exitTimeout, code)
}

func TestWrongCommandLines(t *testing.T) {
	t.Parallel()
	for want, args := range map[string][]string{
		`"frob" is no command`:                        {"frob"},
		`--output: "xml" is neither`:                  {"get", "-o", "xml"},
		"unknown flag: --frob":                        {"get", "--frob"},
		"starter apply: -f FILE is required":          {"apply"},
		"starter apply: accepts 0 arg(s)":             {"apply", "-f", "-", "x"},
		"starter describe: accepts 1 arg(s)":          {"describe"},
		"starter delete: requires at least 1 arg(s)":  {"delete"},
		`--timeout: "0s" is not longer than nothing`:  {"delete", "a", "--timeout", "0s"},
		"-A takes no name":                            {"get", "-A", "a"},
		`starter hold: --for: "60" is not a duration`: {"hold", "a", "--for", "60"},
		`--for: "1ms" is less than 1s`:                {"hold", "a", "--for", "1ms"},
		`--for: "" is no time`:                        {"hold", "a", "--for", ""},
		"starter retry: --reason: \"xxx":              {"retry", "a", "--reason", strings.Repeat("x", 1025)},
		"starter replace: requires at least 1 arg(s)": {"replace"},
		"starter resume: requires at least 1 arg(s)":  {"resume"},
		"starter timeline: accepts 1 arg(s)":          {"timeline", "a", "b"},
		`starter delete: --reason: "" is empty`:       {"delete", "a", "--skip-cleanup"},
		`starter delete: --reason: " " is empty`:      {"delete", "a", "--skip-cleanup", "--reason", " "},
		"starter dev: accepts 0 arg(s)":               {"dev", "now"},
		"starter dev clean: accepts 0 arg(s)":         {"dev", "clean", "all"},
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
		Now:     time.Now, Every: never, After: time.After,
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
