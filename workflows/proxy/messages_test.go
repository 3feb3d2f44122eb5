package proxy

import (
	"encoding/json"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"

	v1 "github.com/egressfleet/egressfleet/api/v1"
	"github.com/egressfleet/egressfleet/providers"
	"github.com/egressfleet/egressfleet/testsuite/fake"
)

func TestReplaceRepeatedHasOneEffect(t *testing.T) {
	sc := newScene(t)
	for _, at := range []time.Duration{30, 40} {
		sc.at(at*time.Minute, func() { sc.tell(UpdateReplace, "same", Why{Reason: "banned"}) })
	}
	sc.deleteAt(time.Hour)
	sc.runs()
	require.Equal(t, 2, sc.backend.Calls(providers.OpCreate))
}

func TestLatch(t *testing.T) {
	other := v1.ProxySpec{Provider: "fake", Port: 1}
	tests := map[string]struct {
		message func(sc *scene)
		creates int // after the message
	}{
		"a hint releases nothing":    {func(sc *scene) { sc.SignalWorkflow(SignalHint, Hint{}) }, 1},
		"a verdict releases nothing": {func(sc *scene) { sc.SignalWorkflow(SignalHealth, HealthReport{}) }, 1},
		"hold releases nothing":      {func(sc *scene) { sc.tell(UpdateHold, "m", Why{}) }, 1},
		"the same spec releases nothing": {
			func(sc *scene) { sc.tell(UpdateApply, "m", ApplyInput{Spec: spec}) }, 1,
		},
		"a changed provider releases": {
			func(sc *scene) { sc.SignalWorkflow(SignalHint, Hint{ProviderChanged: true, Reason: "changed"}) }, 2,
		},
		"retry releases":        {func(sc *scene) { sc.tell(UpdateRetry, "m", Why{}) }, 2},
		"another spec releases": {func(sc *scene) { sc.tell(UpdateApply, "m", ApplyInput{Spec: other}) }, 2},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			sc := newScene(t)
			sc.backend.Before(providers.OpCreate, fake.Failing(providers.ErrPermanent))
			sc.at(20*time.Minute, func() {
				require.Equal(t, v1.PhaseBlocked, sc.status().Phase)
				tc.message(sc)
			})
			sc.at(30*time.Minute, func() { require.Equal(t, tc.creates, sc.backend.Calls(providers.OpCreate)) })
			sc.at(50*time.Minute, sc.backend.Heal)
			sc.at(2*time.Hour, func() { require.Equal(t, v1.PhaseRunning, sc.status().Phase) }) // by the slow probe
			sc.deleteAt(3 * time.Hour)
			sc.runs()
		})
	}
}

func TestARunOfBeforeIsNotReleasedByAChangedProvider(t *testing.T) {
	sc := newScene(t)
	sc.OnGetVersion(changeRound, workflow.Version(versionFirst), workflow.Version(versionNewest)).
		Return(workflow.Version(versionFirst))
	sc.backend.Before(providers.OpCreate, fake.Failing(providers.ErrPermanent))
	sc.at(20*time.Minute, func() { sc.SignalWorkflow(SignalHint, Hint{ProviderChanged: true}) })
	sc.at(30*time.Minute, func() {
		require.Equal(t, 1, sc.backend.Calls(providers.OpCreate), "its history may have been written by other code")
		sc.backend.Heal()
	})
	sc.deleteAt(3 * time.Hour)
	sc.runs()
}

func TestAChangedProviderIsShownAndHurriesNoBackOff(t *testing.T) {
	sc := newScene(t)
	sc.backend.Before(providers.OpCreate, fake.Failing(providers.ErrQuotaExceeded))
	sc.at(20*time.Minute, func() {
		before := sc.backend.Calls(providers.OpCreate)
		for range 5 {
			sc.SignalWorkflow(SignalHint, Hint{ProviderChanged: true})
		}
		sc.at(time.Minute, func() { require.LessOrEqual(t, sc.backend.Calls(providers.OpCreate), before+1) })
	})
	sc.at(30*time.Minute, func() {
		sc.backend.Heal()
		sc.backend.Before(providers.OpCreate, fake.Failing(providers.ErrPermanent))
	})
	sc.at(40*time.Minute, func() {
		require.Equal(t, v1.PhaseBlocked, sc.status().Phase)
		sc.backend.Heal()
		sc.SignalWorkflow(SignalHint, Hint{ProviderChanged: true, Reason: "another credential"})
	})
	sc.at(41*time.Minute, func() {
		require.Equal(t, v1.PhaseRunning, sc.status().Phase)
		var details []string
		for _, e := range sc.timeline() {
			details = append(details, e.Reason+": "+e.Detail)
		}
		require.Contains(t, details, "ProviderChanged: another credential")
	})
	sc.deleteAt(time.Hour)
	sc.runs()
}

func TestCancelAndSignalMeanDelete(t *testing.T) {
	for name, stop := range map[string]func(*scene){
		"cancel":                   func(sc *scene) { sc.CancelWorkflow() },
		"signal with a reason":     func(sc *scene) { sc.SignalWorkflow(SignalDelete, Why{Reason: "r"}) },
		"signal without any input": func(sc *scene) { sc.SignalWorkflow(SignalDelete, nil) },
	} {
		t.Run(name, func(t *testing.T) {
			sc := newScene(t)
			sc.at(time.Hour, func() { stop(sc) })
			begin := sc.Now()
			sc.runs()
			require.Less(t, sc.Now().Sub(begin), time.Hour+time.Minute, "at once")
		})
	}
}

func TestHoldAndResume(t *testing.T) {
	sc := newScene(t)
	sc.at(time.Minute, func() { sc.tell(UpdateHold, "hold", Why{Reason: "banned by example.com"}) })
	sc.at(2*time.Minute, func() {
		require.True(t, sc.status().Held)
		require.Equal(t, "banned by example.com", sc.condition(v1.ConditionHeld).Message)
		sc.tell(UpdateResume, "resume", Why{})
	})
	sc.at(3*time.Minute, func() { require.False(t, sc.status().Held) })
	sc.deleteAt(time.Hour)
	sc.runs()
	require.Equal(t, 1, sc.backend.Calls(providers.OpCreate))
}

func TestAVerdictIsShownAndForgottenWithItsInstance(t *testing.T) {
	sc := newScene(t)
	sc.at(time.Minute, func() {
		sc.SignalWorkflow(SignalHealth, HealthReport{Reason: v1.ReasonUnreachable, Message: "no TCP"})
	})
	sc.at(2*time.Minute, func() {
		require.False(t, *sc.status().Healthy)
		require.Equal(t, v1.ReasonUnreachable, sc.condition(v1.ConditionHealthy).Reason)
		sc.tell(UpdateReplace, "replace", Why{})
	})
	sc.at(10*time.Minute, func() {
		require.Nil(t, sc.status().Healthy)
		require.Equal(t, v1.ReasonNotProbed, sc.condition(v1.ConditionHealthy).Reason)
	})
	sc.deleteAt(time.Hour)
	sc.runs()
}

func TestMessagesThatAreRefused(t *testing.T) {
	moved := spec
	moved.Provider = "else"
	stranger := spec
	stranger.CloudInit.Inline = "redacted:sha256:00:1"
	tests := map[string]struct {
		field string
		in    ApplyInput
	}{
		"another provider": {"spec.provider", ApplyInput{Spec: moved}},
		"no spec":          {"spec.provider", ApplyInput{}},
		"a mark as a label": {
			"metadata.labels", ApplyInput{Spec: spec, Labels: map[string]string{providers.MarkUID: "x"}},
		},
		"a stand-in for nothing": {"spec.cloudInit.inline", ApplyInput{Spec: stranger}},
		"no port":                {"spec.port", ApplyInput{Spec: v1.ProxySpec{Provider: "fake"}}},
		"a deadline that is no time": {
			"spec.deadlines.delete",
			ApplyInput{Spec: v1.ProxySpec{Provider: "fake", Port: 1, Deadlines: v1.Deadlines{Delete: "soon"}}},
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			sc := newScene(t)
			sc.at(time.Minute, func() { sc.UpdateWorkflow(UpdateApply, "m", rejected(t, tc.field), tc.in) })
			sc.deleteAt(time.Hour)
			sc.runs()
			require.Equal(t, 1, sc.backend.Calls(providers.OpCreate))
		})
	}
}

func TestADeletedProxyTakesNoOrders(t *testing.T) {
	sc := newScene(t, fake.WithSlowDelete())
	sc.deleteAt(time.Minute)
	sc.at(2*time.Minute, func() {
		sc.UpdateWorkflow(UpdateApply, "a", rejected(t, "being deleted"), ApplyInput{Spec: spec})
		sc.UpdateWorkflow(UpdateReplace, "b", rejected(t, "being deleted"), Why{})
		sc.UpdateWorkflow(UpdateHold, "c", rejected(t, "being deleted"), Why{})
		sc.tell(UpdateDelete, "again", Why{})
		sc.backend.FinishDeletes()
	})
	sc.runs()
}

func TestInputThatCannotBeRightFailsAtOnce(t *testing.T) {
	const good, id = `{"spec":{"provider":"fake","port":3128}}`, "proxy/default/a"
	tests := map[string]struct{ id, input, field string }{
		"no provider":     {id, `{"spec":{"port":1}}`, "spec.provider"},
		"no port":         {id, `{"spec":{"provider":"fake"}}`, "spec.port"},
		"a wrong type":    {id, `{"spec":{"provider":"fake","port":"x"}}`, "spec.port"},
		"a typo":          {id, `{"spec":{"provider":"fake","port":1,"placment":{}}}`, "placment"},
		"no object":       {id, `[]`, "array"},
		"null":            {id, `null`, "spec.provider"},
		"a bad uid":       {id, `{"spec":{"provider":"fake","port":1},"uid":"a b"}`, "uid"},
		"a bad label":     {id, `{"spec":{"provider":"fake","port":1},"labels":{"a b":""}}`, "metadata.labels"},
		"another ID":      {"proxy:a", good, "workflow ID"},
		"an ID too short": {"proxy/a", good, "workflow ID"},
		"an ID too long":  {"proxy/a/b/c", good, "workflow ID"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			sc := newScene(t)
			sc.SetStartWorkflowOptions(client.StartWorkflowOptions{ID: tc.id, TaskQueue: TaskQueue})
			sc.ExecuteWorkflow(WorkflowType, json.RawMessage(tc.input))
			app, ok := errors.AsType[*temporal.ApplicationError](sc.GetWorkflowError())
			require.True(t, ok)
			require.True(t, app.NonRetryable())
			require.Equal(t, ErrInvalidInput, app.Type())
			require.Contains(t, app.Message(), tc.field)
			require.Empty(t, sc.backend.Requests())
		})
	}
}
