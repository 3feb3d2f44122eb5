package main

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/egressfleet/egressfleet/starter/explain"
)

func TestExplainSaysWhyAndWhatNext(t *testing.T) {
	t.Parallel()
	out, errOut, code := run(t.Context(), fleetOfThree(), "", "explain", "waits")
	require.Zero(t, code, errOut)
	require.Equal(t, `Now:  default/waits is Pending: there is nothing of it at the backend.
      Discovery does not hand it out.
      Generation 1 of its spec is wanted, and generation 0 is what was acted on.
Why:  The backend has no room or no quota left for it (QuotaExceeded). What is told of it is: “no
      more”.
Next: It tries again in 4 minutes, at 2026-01-31 12:04:00 UTC. Raise the quota, free some of it, or
      choose another spec.placement.
`, out)
}

func TestExplainIsAnObjectToo(t *testing.T) {
	t.Parallel()
	out, errOut, code := run(t.Context(), fleetOfThree(), "", "explain", "runs", "-o", "json")
	require.Zero(t, code, errOut)
	require.NotContains(t, out, "hunter2")
	var e explain.Explanation
	require.NoError(t, json.Unmarshal([]byte(out), &e))
	require.Contains(t, e.Now[0], "default/runs is Running")
	require.NotEmpty(t, e.Why)
	require.NotEmpty(t, e.Next)
}

func TestExplainWithoutAWorkerSaysWhatItCan(t *testing.T) {
	t.Parallel()
	f := fleetOfThree()
	f.noWorker = true
	out, errOut, code := run(t.Context(), f, "", "explain", "runs")
	require.Contains(t, out, "default/runs is Running")
	require.Contains(t, errOut, "starter: timeline: the fleet is unavailable")
	require.Equal(t, exitUnavailable, code)
	_, errOut, code = run(t.Context(), f, "", "explain", "nobody")
	require.Equal(t, "starter: explain default/nobody: no such proxy: default/nobody\n", errOut)
	require.Equal(t, exitNotFound, code)
}
