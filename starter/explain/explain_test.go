package explain_test

import (
	"cmp"
	"flag"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	v1 "github.com/egressfleet/egressfleet/api/v1"
	"github.com/egressfleet/egressfleet/starter/explain"
)

var update = flag.Bool("update", false, "write the golden file anew")

// noon is when everything is explained.
var noon = time.Date(2026, time.January, 31, 12, 0, 0, 0, time.UTC)

// constants returns the string constants of api/v1 whose names begin with a prefix, by
// their names.
func constants(t *testing.T, prefix string) map[string]string {
	t.Helper()
	file, err := parser.ParseFile(token.NewFileSet(), "../../api/v1/condition.go", nil, 0)
	require.NoError(t, err)
	found := map[string]string{}
	ast.Inspect(file, func(n ast.Node) bool {
		spec, is := n.(*ast.ValueSpec)
		if !is || !strings.HasPrefix(spec.Names[0].Name, prefix) {
			return true
		}
		value, err := strconv.Unquote(spec.Values[0].(*ast.BasicLit).Value)
		require.NoError(t, err)
		found[spec.Names[0].Name] = value
		return true
	})
	return found
}

// A reason that is added to api/v1 needs its sentence in reasons.go.
func TestEveryReasonHasASentence(t *testing.T) {
	t.Parallel()
	reasons := constants(t, "Reason")
	require.Greater(t, len(reasons), 25)
	told := map[string]bool{}
	for _, of := range explain.Accounts() {
		for reason := range of {
			told[reason] = true
		}
	}
	for name, reason := range reasons {
		require.True(t, told[reason], "v1.%s has no sentence in starter/explain/reasons.go", name)
		delete(told, reason)
	}
	require.Empty(t, told, "these are no reasons of api/v1")
}

func TestEveryConditionHasItsReasons(t *testing.T) {
	t.Parallel()
	for name, kind := range constants(t, "Condition") {
		if kind == v1.ConditionHeld || strings.HasPrefix(name, "ConditionTrue") ||
			strings.HasPrefix(name, "ConditionFalse") || strings.HasPrefix(name, "ConditionUnknown") {
			continue // a hold has a person's own reason; the others are values
		}
		require.NotEmpty(t, explain.Accounts()[kind], name)
	}
}

// of is a Proxy of a phase with one condition.
func of(phase v1.Phase, c v1.Condition) v1.Proxy {
	p := v1.Proxy{
		Metadata: v1.Metadata{Namespace: "default", Name: "a", Generation: 1},
		Spec:     v1.ProxySpec{Provider: "gcp", Port: 3128, CloudInit: v1.CloudInit{Inline: "password: hunter2"}},
		Status:   v1.ProxyStatus{Phase: phase, ObservedGeneration: 1, Since: noon.Add(-12 * time.Minute)},
	}
	if phase == v1.PhaseRunning {
		p.Status.IP = "10.1.2.3"
	}
	if c.Type != "" {
		c.LastTransitionTime = noon.Add(-3 * time.Minute)
		p.Status.Conditions = []v1.Condition{c}
	}
	return p
}

func bad(kind, reason string) v1.Condition {
	return v1.Condition{Type: kind, Status: v1.ConditionFalse, Reason: reason, Message: "what was said; next attempt at X"}
}

// inItsPhase is a Proxy in the phase that a reason usually goes with.
func inItsPhase(kind, reason string) v1.Proxy {
	c, phase := bad(kind, reason), v1.PhaseRunning
	switch kind {
	case v1.ConditionDeleting:
		phase, c.Status = v1.PhaseDeleting, v1.ConditionTrue
	case v1.ConditionOpenProxy:
		c.Status = v1.ConditionUnknown
	case v1.ConditionProvisioned:
		phase = cmp.Or(usually()[reason], v1.PhaseProvisioning)
	}
	switch reason {
	case v1.ReasonHealthy, v1.ReasonCreated, v1.ReasonFromMarks:
		c.Status = v1.ConditionTrue
	case v1.ReasonInconclusive, v1.ReasonNoTarget, v1.ReasonNotProbed:
		c.Status = v1.ConditionUnknown
	}
	p := of(phase, c)
	if passed := c.Status == v1.ConditionTrue; kind == v1.ConditionHealthy && c.Status != v1.ConditionUnknown {
		p.Status.Healthy = &passed
	}
	if reason == v1.ReasonQuotaExceeded || reason == v1.ReasonTransientError || phase == v1.PhaseBlocked {
		p.Status.NextAttemptAt = noon.Add(4 * time.Minute)
	}
	return p
}

// usually is the phase of a reason of Provisioned; others go with Provisioning.
func usually() map[string]v1.Phase {
	return map[string]v1.Phase{
		v1.ReasonCreated: v1.PhaseRunning, v1.ReasonPermanentError: v1.PhaseBlocked,
		v1.ReasonProviderNotConfigured: v1.PhaseBlocked, v1.ReasonCloudInitUnknown: v1.PhaseBlocked,
		v1.ReasonForeignInstance: v1.PhaseBlocked,
		v1.ReasonInstanceLost:    v1.PhasePending, v1.ReasonQuotaExceeded: v1.PhasePending,
		v1.ReasonNotPrepared: v1.PhasePending, v1.ReasonInstanceStopped: v1.PhaseReplacing,
		v1.ReasonInstanceTerminated: v1.PhaseReplacing, v1.ReasonReplacing: v1.PhaseReplacing,
	}
}

func text(name string, e explain.Explanation) string {
	return fmt.Sprintf("# %s\nnow:  %s\nwhy:  %s\nnext: %s\n\n", name,
		strings.Join(e.Now, " "), strings.Join(e.Why, " "), strings.Join(e.Next, " "))
}

// TestEveryPhaseAndEveryReason reads as a text of its own: testdata/sentences.txt.
func TestEveryPhaseAndEveryReason(t *testing.T) {
	t.Parallel()
	var b strings.Builder
	for _, phase := range append(v1.Phases(), "") {
		p := of(phase, v1.Condition{})
		b.WriteString(text(fmt.Sprintf("phase %q, and nothing else", phase), explain.Of(p, nil, noon)))
	}
	reasons := constants(t, "Reason")
	for _, kind := range []string{
		v1.ConditionProvisioned, v1.ConditionDeleting, v1.ConditionHealthy, v1.ConditionOpenProxy, v1.ConditionAdopted,
	} {
		for _, reason := range sorted(reasons) {
			if _, has := explain.Accounts()[kind][reason]; has {
				b.WriteString(text(kind+" "+reason, explain.Of(inItsPhase(kind, reason), nil, noon)))
			}
		}
	}
	if *update {
		require.NoError(t, os.WriteFile("testdata/sentences.txt", []byte(b.String()), 0o600))
	}
	want, err := os.ReadFile("testdata/sentences.txt")
	require.NoError(t, err)
	require.Equal(t, string(want), b.String())
	require.NotContains(t, b.String(), "hunter2")
}

// What is said is three texts, whatever the phase and the reason are.
func TestEveryPhaseGoesWithEveryReason(t *testing.T) {
	t.Parallel()
	for _, phase := range append(v1.Phases(), "", "Later") {
		for kind := range explain.Accounts() {
			for _, reason := range append(sorted(constants(t, "Reason")), "Unheard") {
				e := explain.Of(of(phase, bad(kind, reason)), nil, noon)
				require.NotEmpty(t, e.Now)
				if phase != "Later" {
					require.NotEmpty(t, e.Next, "%s %s %s", phase, kind, reason)
				}
				if kind == v1.ConditionProvisioned {
					require.NotEmpty(t, e.Why)
					require.Contains(t, e.Why[0], reason)
				}
			}
		}
	}
}
