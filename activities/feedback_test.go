package activities_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"github.com/stretchr/testify/require"
	sdktest "go.temporal.io/sdk/testsuite"

	"github.com/egressfleet/egressfleet/activities"
	v1 "github.com/egressfleet/egressfleet/api/v1"
)

var made = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

// judged is a fleet of listed proxies, which notes what it is asked.
type judged struct {
	proxies map[string][]v1.Proxy
	asked   []string
	answer  map[string]error // by name; errAnother: it is not the accused any more
}

var errAnother = errors.New("another instance")

func (j *judged) Proxies(_ context.Context, provider string) ([]v1.Proxy, error) {
	if j.proxies == nil {
		return nil, errors.New("away")
	}
	return j.proxies[provider], nil
}

func (j *judged) Hold(_ context.Context, a activities.Accused, h v1.Hold, request string) (bool, error) {
	return j.take("hold", a, string(h.For)+" "+h.Reason, request)
}

func (j *judged) Replace(_ context.Context, a activities.Accused, reason, request string) (bool, error) {
	return j.take("replace", a, reason, request)
}

func (j *judged) take(what string, a activities.Accused, why, request string) (bool, error) {
	j.asked = append(j.asked, strings.Join([]string{what, a.Name, why, request}, "|"))
	if err := j.answer[a.Name]; !errors.Is(err, errAnother) {
		return err == nil, err
	}
	return false, nil
}

func accused(provider, name string) activities.Accused {
	return activities.Accused{Provider: provider, Namespace: "default", Name: name, UID: "uid-" + name, MadeAt: made}
}

func member(name string, change func(*v1.Proxy)) v1.Proxy {
	p := v1.Proxy{
		Metadata: v1.Metadata{Namespace: "default", Name: name, UID: "uid-" + name},
		Spec:     v1.ProxySpec{Provider: "gcp", Port: 1},
		Status:   v1.ProxyStatus{Phase: v1.PhaseRunning, IP: "203.0.113.7", InstanceCreatedAt: made},
	}
	if change != nil {
		change(&p)
	}
	return p
}

func TestAPoolIsCountedByWhatClientsMayUse(t *testing.T) {
	t.Parallel()
	sick := false
	f := activities.Feedback{Fleet: &judged{proxies: map[string][]v1.Proxy{"gcp": {
		member("a", nil), member("b", nil), member("left", nil),
		member("held", func(p *v1.Proxy) { p.Status.Held = true }),
		member("sick", func(p *v1.Proxy) { p.Status.Healthy = &sick }),
		member("new", func(p *v1.Proxy) { p.Status.Phase = v1.PhaseProvisioning }),
		member("going", func(p *v1.Proxy) { p.Status.Phase = v1.PhaseDeleting }),
		member("other", func(p *v1.Proxy) { p.Status.InstanceCreatedAt = made.Add(1) }),
	}}}}
	look := activities.FeedbackLook{Leaving: []string{"default/left"}}
	for _, name := range []string{"a", "left", "held", "sick", "other", "nobody"} {
		look.Accused = append(look.Accused, accused("gcp", name))
	}
	look.Accused = append(look.Accused, accused("empty", "x"))
	got, err := f.LookAtPool(t.Context(), look)
	require.NoError(t, err)
	require.Equal(t, activities.FeedbackStandings{
		Providers: map[string]activities.Standing{"gcp": {Total: 7, Usable: 3}, "empty": {}}, There: []string{"default/a"},
	}, got)
	_, err = (&activities.Feedback{Fleet: &judged{}}).LookAtPool(t.Context(), look)
	require.ErrorContains(t, err, "listing the proxies of provider gcp: away")
}

func TestVerdictsAreDoneCountedAndToldInTheAuditLog(t *testing.T) {
	t.Parallel()
	var suite sdktest.WorkflowTestSuite
	var log audit
	suite.SetLogger(&log)
	env := suite.NewTestActivityEnvironment()
	registry := prometheus.NewRegistry()
	j := &judged{answer: map[string]error{"gone": errAnother, "stuck": errors.New("away")}}
	f := &activities.Feedback{Fleet: j, Metrics: activities.NewFeedbackMetrics(registry)}
	env.RegisterActivity(f)
	verdict := func(name, do, refused string) activities.FeedbackVerdict {
		return activities.FeedbackVerdict{Accused: accused("gcp", name), Do: do, Refused: refused, Reason: "why", For: "5m"}
	}
	order := activities.FeedbackOrder{Request: "r", Verdicts: []activities.FeedbackVerdict{
		verdict("stuck", "replace", ""), verdict("a", "replace", ""), verdict("b", "hold", ""),
		verdict("gone", "replace", ""), verdict("c", "hold", activities.RefusedFloor),
		verdict("d", "replace", activities.RefusedBudget),
	}}
	value, err := env.ExecuteActivity(f.ActOnFeedback, order)
	require.NoError(t, err, "one that cannot be asked keeps nobody waiting")
	var done activities.FeedbackDone
	require.NoError(t, value.Get(&done))
	require.Equal(t, []string{"default/a", "default/b"}, done.Asked)
	require.Equal(t, []string{"replace|stuck|why|r", "replace|a|why|r", "hold|b|5m why|r", "replace|gone|why|r"}, j.asked)
	require.Equal(t, []string{"feedback replace a", "feedback hold b"}, log.lines)
	require.NoError(t, testutil.GatherAndCompare(registry, strings.NewReader(`
# HELP egressfleet_feedback_actions_total Holds and replacements that clients' reports led to.
# TYPE egressfleet_feedback_actions_total counter
egressfleet_feedback_actions_total{provider="gcp",verdict="hold"} 1
egressfleet_feedback_actions_total{provider="gcp",verdict="replace"} 1
# HELP egressfleet_feedback_refusals_total Holds and replacements that budget or floor forbade.
# TYPE egressfleet_feedback_refusals_total counter
egressfleet_feedback_refusals_total{provider="gcp",verdict="hold",why="floor"} 1
egressfleet_feedback_refusals_total{provider="gcp",verdict="replace",why="budget"} 1
`)))
}

// audit keeps the lines of the audit log.
type audit struct{ lines []string }

func (a *audit) Debug(string, ...any) {}
func (a *audit) Warn(string, ...any)  {}
func (a *audit) Error(string, ...any) {}
func (a *audit) Info(msg string, pairs ...any) {
	if msg != "audit" {
		return
	}
	found := map[any]any{}
	for i := 0; i+1 < len(pairs); i += 2 {
		found[pairs[i]] = pairs[i+1]
	}
	a.lines = append(a.lines, strings.Join([]string{
		found["who"].(string), found["action"].(string), found["name"].(string),
	}, " "))
}
