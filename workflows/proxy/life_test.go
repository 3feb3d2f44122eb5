package proxy

import (
	"context"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/workflow"

	"github.com/egressfleet/egressfleet/activities"
	v1 "github.com/egressfleet/egressfleet/api/v1"
	"github.com/egressfleet/egressfleet/providers"
	"github.com/egressfleet/egressfleet/testsuite/fake"
)

func TestCreateThenDelete(t *testing.T) {
	sc := newScene(t)
	sc.at(time.Hour, func() {
		got := sc.status()
		require.Equal(t, v1.PhaseRunning, got.Phase)
		require.Equal(t, sc.backend.Instances()[0].IP, got.IP)
		require.EqualValues(t, 1, got.ObservedGeneration)
		require.Equal(t, v1.ConditionTrue, sc.condition(v1.ConditionProvisioned).Status)
		require.Equal(t, v1.ReasonNotProbed, sc.condition(v1.ConditionHealthy).Reason)
		sc.tell(UpdateDelete, "delete", Why{})
	})
	begin := sc.Now()
	sc.runs()
	require.Less(t, sc.Now().Sub(begin), time.Hour+time.Minute, "a delete does not wait for the next look")
	require.Equal(t, 1, sc.backend.Calls(providers.OpCreate))
	require.Equal(t, 1, sc.backend.Calls(providers.OpDelete))
}

func TestTheInstanceCarriesTheMarks(t *testing.T) {
	sc := newScene(t)
	sc.spec.CloudInit.Inline = "#cloud-config\n# s3cret"
	sc.deleteAt(time.Hour)
	sc.runs()
	req := sc.backend.Requests()[0]
	require.Equal(t, providers.NameFromUID(testUID), req.Name)
	require.Equal(t, testUID, req.UID)
	require.Equal(t, "default/a", req.Owner)
	require.Equal(t, fake.DefaultInstallation, req.Installation)
	require.Equal(t, 1, req.Attempt)
	require.Equal(t, sc.spec.CloudInit.Inline, string(req.CloudInit))
	require.Contains(t, req.SpecMark, `"specHash":"v1:`)
	require.NotContains(t, req.SpecMark, "s3cret")
}

func TestProvisioningThenRunning(t *testing.T) {
	sc := newScene(t, fake.WithProvisioning())
	sc.at(time.Minute, func() {
		require.Equal(t, v1.PhaseProvisioning, sc.status().Phase)
		require.Empty(t, sc.status().IP)
		require.Equal(t, v1.ReasonProvisioning, sc.condition(v1.ConditionProvisioned).Reason)
		sc.backend.Finish(sc.backend.Instances()[0].ID)
	})
	sc.at(2*time.Minute, func() { require.Equal(t, v1.PhaseRunning, sc.status().Phase) })
	sc.deleteAt(time.Hour)
	sc.runs()
}

func TestASlowBootIsAConditionAndNoReasonToChurn(t *testing.T) {
	sc := newScene(t, fake.WithProvisioning())
	sc.at(20*time.Minute, func() {
		require.Equal(t, v1.ReasonProvisioning, sc.condition(v1.ConditionProvisioned).Reason)
	})
	sc.at(40*time.Minute, func() {
		require.Equal(t, v1.ReasonProvisioningTimeout, sc.condition(v1.ConditionProvisioned).Reason)
		sc.backend.Finish(sc.backend.Instances()[0].ID)
	})
	sc.at(41*time.Minute, func() { require.Equal(t, v1.PhaseRunning, sc.status().Phase) })
	sc.deleteAt(time.Hour)
	sc.runs()
	require.Equal(t, 1, sc.backend.Calls(providers.OpCreate))
}

func TestHourOfFailureThenDelete(t *testing.T) {
	for _, class := range []providers.Class{providers.ErrTransient, providers.ErrPermanent, providers.ErrQuotaExceeded} {
		for name, from := range map[string]time.Duration{"from the start": 0, "while it runs": 30 * time.Minute} {
			t.Run(string(class)+" "+name, func(t *testing.T) {
				sc := newScene(t)
				if from == 0 {
					sc.backend.Break(class)
				}
				sc.at(from+time.Second, func() { sc.backend.Break(class) })
				sc.at(from+time.Hour+5*time.Minute, func() {
					c := sc.condition(v1.ConditionProvisioned)
					require.Equal(t, failure{Fault: activities.Fault{Class: class}}.reason(), c.Reason)
					require.Contains(t, c.Message, "injected")
					require.NotEqual(t, v1.ConditionTrue, c.Status)
					sc.tell(UpdateDelete, "delete", Why{})
				})
				sc.at(from+2*time.Hour, sc.backend.Heal)
				sc.runs()
			})
		}
	}
}

func TestLostInstanceIsMadeAgain(t *testing.T) {
	sc := newScene(t)
	sc.at(30*time.Minute, func() { sc.backend.Lose(sc.backend.Instances()[0].ID) })
	sc.at(2*time.Hour, func() {
		require.Equal(t, v1.PhaseRunning, sc.status().Phase)
		require.Len(t, sc.backend.Instances(), 1)
		var reasons []string
		for _, e := range sc.timeline() {
			reasons = append(reasons, e.Reason)
		}
		require.Contains(t, reasons, v1.ReasonInstanceLost)
	})
	sc.deleteAt(3 * time.Hour)
	sc.runs()
	require.Equal(t, 2, sc.backend.Calls(providers.OpCreate))
	require.Equal(t, 2, sc.backend.Requests()[1].Attempt, "a new create is a new attempt")
}

func TestSingleFalseNotFoundMakesNoSecondInstance(t *testing.T) {
	sc := newScene(t)
	sc.at(30*time.Minute, func() { sc.backend.Before(providers.OpGet, fake.Once(providers.ErrNotFound)) })
	sc.at(2*time.Hour, func() { require.Equal(t, v1.PhaseRunning, sc.status().Phase) })
	sc.deleteAt(3 * time.Hour)
	sc.runs()
	require.Equal(t, 1, sc.backend.Calls(providers.OpCreate))
}

func TestAStoppedInstanceIsReplacedOnceItIsGone(t *testing.T) {
	for state, reason := range map[providers.State]string{
		providers.StateStopped: v1.ReasonInstanceStopped, providers.StateTerminated: v1.ReasonInstanceTerminated,
		"WEIRD": v1.ReasonInstanceStopped,
	} {
		t.Run(string(state), func(t *testing.T) {
			sc := newScene(t, fake.WithSlowDelete())
			sc.at(30*time.Minute, func() { sc.backend.SetState(sc.backend.Instances()[0].ID, state) })
			sc.at(2*time.Hour, func() {
				require.Equal(t, v1.PhaseReplacing, sc.status().Phase)
				require.Equal(t, reason, sc.condition(v1.ConditionProvisioned).Reason)
				require.Equal(t, 1, sc.backend.Calls(providers.OpCreate), "not before the old one is gone")
				require.Equal(t, 1, sc.backend.Calls(providers.OpDelete), "not again while the backend deletes")
				sc.backend.FinishDeletes()
			})
			sc.at(3*time.Hour, func() { require.Equal(t, v1.PhaseRunning, sc.status().Phase) })
			sc.deleteAt(4 * time.Hour)
			sc.at(4*time.Hour+time.Minute, sc.backend.FinishDeletes)
			sc.runs()
			require.Equal(t, 2, sc.backend.Calls(providers.OpCreate))
		})
	}
}

func TestAnotherSpecReplaces(t *testing.T) {
	for name, change := range map[string]func(*v1.ProxySpec){
		"placement":  func(s *v1.ProxySpec) { s.Placement.Zone = "b" },
		"port":       func(s *v1.ProxySpec) { s.Port++ },
		"cloud-init": func(s *v1.ProxySpec) { s.CloudInit.Inline = "#cloud-config" },
	} {
		t.Run(name, func(t *testing.T) {
			sc := newScene(t)
			other := spec
			change(&other)
			sc.at(30*time.Minute, func() { sc.tell(UpdateApply, "apply", ApplyInput{Spec: other}) })
			sc.at(31*time.Minute, func() { sc.tell(UpdateApply, "again", ApplyInput{Spec: other}) })
			sc.at(32*time.Minute, func() { sc.tell(UpdateApply, "read back", ApplyInput{Spec: other.Redacted()}) })
			sc.at(40*time.Minute, func() {
				require.Equal(t, v1.PhaseRunning, sc.status().Phase)
				require.EqualValues(t, 2, sc.status().ObservedGeneration, "the same spec again is no new generation")
			})
			sc.deleteAt(time.Hour)
			sc.runs()
			require.Equal(t, 2, sc.backend.Calls(providers.OpCreate))
		})
	}
}

func TestWhatReplacesNothing(t *testing.T) {
	for name, change := range map[string]func(*ApplyInput){
		"labels":       func(in *ApplyInput) { in.Labels = map[string]string{"team": "b"} },
		"deadlines":    func(in *ApplyInput) { in.Spec.Deadlines.Delete = "1h" },
		"health check": func(in *ApplyInput) { in.Spec.HealthCheck.Disabled = true },
		"nothing":      func(*ApplyInput) {},
	} {
		t.Run(name, func(t *testing.T) {
			sc := newScene(t)
			in := ApplyInput{Spec: spec}
			change(&in)
			sc.at(30*time.Minute, func() { sc.tell(UpdateApply, "apply", in) })
			sc.deleteAt(time.Hour)
			sc.runs()
			require.Equal(t, 1, sc.backend.Calls(providers.OpCreate))
			require.Equal(t, 1, sc.backend.Calls(providers.OpDelete))
		})
	}
}

func TestQuotaIsAskedEveryFiveMinutesAndRecoversUnaided(t *testing.T) {
	sc := newScene(t)
	sc.backend.Before(providers.OpCreate, fake.FailingWith(providers.ErrQuotaExceeded, "CPUS: 8 of 8"))
	for m := range 60 { // hints shorten no back-off
		sc.at(time.Duration(m)*time.Minute, func() { sc.SignalWorkflow(SignalHint, Hint{}) })
	}
	sc.at(time.Hour-time.Minute, func() {
		require.LessOrEqual(t, sc.backend.Calls(providers.OpCreate), 12)
		require.Greater(t, sc.backend.Calls(providers.OpCreate), 9)
		require.Equal(t, v1.PhasePending, sc.status().Phase)
		c := sc.condition(v1.ConditionProvisioned)
		require.Equal(t, v1.ReasonQuotaExceeded, c.Reason)
		require.Contains(t, c.Message, "CPUS: 8 of 8")
		require.Equal(t, time.Hour, sc.Now().Sub(c.LastTransitionTime).Round(time.Hour))
		require.LessOrEqual(t, sc.status().NextAttemptAt.Sub(sc.Now()), 5*time.Minute)
		require.Less(t, len(sc.timeline()), 5, "the same again is no news")
		sc.backend.Heal()
	})
	sc.at(2*time.Hour, func() { require.Equal(t, v1.PhaseRunning, sc.status().Phase) })
	sc.deleteAt(3 * time.Hour)
	sc.runs()
}

func TestTransientBacksOffToFiveMinutes(t *testing.T) {
	sc := newScene(t)
	sc.backend.Before(providers.OpCreate, fake.Failing(providers.ErrTransient))
	sc.at(3*time.Hour, func() {
		require.Equal(t, v1.ReasonTransientError, sc.condition(v1.ConditionProvisioned).Reason)
		left := sc.status().NextAttemptAt.Sub(sc.condition(v1.ConditionProvisioned).LastTransitionTime)
		require.Greater(t, left, 2*time.Hour)
		sc.backend.Heal()
	})
	sc.deleteAt(4 * time.Hour)
	sc.runs()
	require.Equal(t, 1, sc.backend.Requests()[0].Attempt, "a repetition is the same attempt")
}

func TestDeleteResolvesAnUnknownCreate(t *testing.T) {
	sc := newScene(t)
	sc.backend.After(providers.OpCreate, fake.Failing(providers.ErrTransient)) // made, but the answer is lost
	sc.at(time.Minute, func() {
		require.Len(t, sc.backend.Instances(), 1)
		sc.tell(UpdateDelete, "delete", Why{})
	})
	sc.runs()
	require.Positive(t, sc.backend.Calls(providers.OpList))
}

func TestAnotherSpecAfterAnUnknownCreateAdoptsNothingOld(t *testing.T) {
	sc := newScene(t)
	other := spec
	other.Port++
	sc.backend.After(providers.OpCreate, fake.Failing(providers.ErrPermanent)) // made, and refused
	sc.at(time.Minute, func() {
		sc.backend.Heal()
		sc.tell(UpdateApply, "apply", ApplyInput{Spec: other})
	})
	sc.at(time.Hour, func() {
		require.Equal(t, v1.PhaseRunning, sc.status().Phase)
		require.Equal(t, 1, sc.backend.Calls(providers.OpDelete), "the old one was removed first")
	})
	sc.deleteAt(2 * time.Hour)
	sc.runs()
}

func TestAForeignInstanceIsNeitherAdoptedNorDeleted(t *testing.T) {
	sc := newScene(t)
	foreign := providers.Instance{
		ID: fake.ID(providers.NameFromUID(testUID)), UID: "somebody-else", State: providers.StateRunning, IP: "127.0.0.9",
	}
	sc.backend.Plant(foreign)
	sc.at(time.Minute, func() {
		require.Equal(t, v1.PhaseBlocked, sc.status().Phase)
		c := sc.condition(v1.ConditionProvisioned)
		require.Equal(t, v1.ReasonForeignInstance, c.Reason)
		require.Contains(t, c.Message, "somebody-else")
		require.Contains(t, c.Message, testUID)
		sc.tell(UpdateDelete, "delete", Why{})
	})
	sc.ExecuteWorkflow(WorkflowType, Input{Spec: spec})
	require.NoError(t, sc.GetWorkflowError())
	require.Len(t, sc.backend.Instances(), 1, "it is somebody else's")
	require.Zero(t, sc.backend.Calls(providers.OpDelete))
}

func TestAnUnknownProviderLatchesUntilItIsThere(t *testing.T) {
	sc := newScene(t)
	sc.spec.Provider = "later"
	sc.at(10*time.Minute, func() {
		require.Equal(t, v1.PhaseBlocked, sc.status().Phase)
		c := sc.condition(v1.ConditionProvisioned)
		require.Equal(t, v1.ReasonProviderNotConfigured, c.Reason)
		require.Contains(t, c.Message, "later")
		sc.tell(UpdateDelete, "delete", Why{})
	})
	begin := sc.Now()
	sc.runs()
	require.Less(t, sc.Now().Sub(begin), 11*time.Minute, "nothing was ever created, so it closes at once")
}

func TestALateCreateFailureIsNotRetriedAsIfNothingHadHappened(t *testing.T) {
	for class, phase := range map[providers.Class]v1.Phase{
		providers.ErrQuotaExceeded: v1.PhaseProvisioning, providers.ErrPermanent: v1.PhaseBlocked,
	} {
		t.Run(string(class), func(t *testing.T) {
			sc := newScene(t)
			sc.backend.FailCreate(class, "ZONE_RESOURCE_POOL_EXHAUSTED")
			sc.at(4*time.Minute, func() {
				require.Equal(t, phase, sc.status().Phase)
				c := sc.condition(v1.ConditionProvisioned)
				require.Equal(t, v1.ReasonCreateFailed, c.Reason)
				require.Contains(t, c.Message, "ZONE_RESOURCE_POOL_EXHAUSTED")
				require.Equal(t, 1, sc.backend.Calls(providers.OpCreate))
			})
			sc.at(2*time.Hour, func() { require.Equal(t, v1.PhaseRunning, sc.status().Phase) })
			sc.deleteAt(3 * time.Hour)
			sc.runs()
			require.Equal(t, 2, sc.backend.Requests()[1].Attempt, "not the old operation again")
		})
	}
}

func TestASecretIsDeliveredAndItsChangeReplaces(t *testing.T) {
	sc := newScene(t)
	ref := v1.SecretRef{Name: "init", Key: "user-data"}
	sc.spec.CloudInit.SecretRef = &ref
	file := filepath.Join(sc.secrets, ref.Name, ref.Key)
	require.NoError(t, os.Mkdir(filepath.Dir(file), 0o700))
	sc.at(10*time.Minute, func() {
		require.Equal(t, v1.ReasonTransientError, sc.condition(v1.ConditionProvisioned).Reason)
		require.Contains(t, sc.condition(v1.ConditionProvisioned).Message, "user-data", "it says what is missing")
		require.NoError(t, os.WriteFile(file, []byte("one"), 0o600))
	})
	sc.at(time.Hour, func() {
		require.Equal(t, v1.PhaseRunning, sc.status().Phase)
		sc.tell(UpdateApply, "same", ApplyInput{Spec: sc.spec})
	})
	sc.at(90*time.Minute, func() {
		require.Equal(t, 1, sc.backend.Calls(providers.OpCreate))
		require.NoError(t, os.WriteFile(file, []byte("two"), 0o600))
		sc.tell(UpdateApply, "changed", ApplyInput{Spec: sc.spec})
	})
	sc.deleteAt(3 * time.Hour)
	sc.runs()
	require.Len(t, sc.backend.Requests(), 2)
	require.Equal(t, "one", string(sc.backend.Requests()[0].CloudInit))
	require.Equal(t, "two", string(sc.backend.Requests()[1].CloudInit))
}

func TestADeleteThatGetsStuckSaysSo(t *testing.T) {
	sc := newScene(t, fake.WithSlowDelete())
	sc.deleteAt(time.Minute)
	sc.at(10*time.Minute, func() { require.Equal(t, v1.ReasonInProgress, sc.condition(v1.ConditionDeleting).Reason) })
	sc.at(time.Hour, func() {
		require.Equal(t, v1.ReasonStuckDeleting, sc.condition(v1.ConditionDeleting).Reason)
		sc.backend.FinishDeletes()
	})
	sc.runs()
}

func TestDeleteIsRepeatedAtMostOncePerBusyLease(t *testing.T) {
	sc := newScene(t, fake.WithSlowDelete())
	sc.backend.After(providers.OpDelete, func(context.Context) error {
		sc.backend.SetDeleting(sc.backend.Instances()[0].ID, false) // it took the wish, and forgets it
		return nil
	})
	sc.deleteAt(time.Minute)
	sc.at(21*time.Minute, func() {
		require.LessOrEqual(t, sc.backend.Calls(providers.OpDelete), 11)
		// In this environment a lease only ends with the watch's total bound.
		require.Greater(t, sc.backend.Calls(providers.OpDelete), 3)
		sc.backend.Heal()
		sc.backend.Lose(sc.backend.Instances()[0].ID)
	})
	sc.runs()
}

func TestAnOldRunContinuesAsNew(t *testing.T) {
	sc := newScene(t)
	sc.at(MaxRunAge-time.Hour, func() { sc.SignalWorkflow(SignalHint, Hint{}) })
	sc.at(MaxRunAge+time.Hour, func() { sc.SignalWorkflow(SignalHint, Hint{}) })
	sc.ExecuteWorkflow(WorkflowType, Input{Spec: spec})
	require.True(t, workflow.IsContinueAsNewError(sc.GetWorkflowError()))
}

func TestContinuesAsNewBetweenRounds(t *testing.T) {
	sc := newScene(t)
	sc.SetContinueAsNewSuggested(true)
	sc.ExecuteWorkflow(WorkflowType, Input{Spec: spec})
	require.True(t, workflow.IsContinueAsNewError(sc.GetWorkflowError()))
	require.Len(t, sc.backend.Instances(), 1)
}

func TestWhatNeverStaysIsMadeMoreAndMoreSlowly(t *testing.T) {
	for name, fate := range map[string]func(sc *scene, id string){
		"it stops at once":    func(sc *scene, id string) { sc.backend.SetState(id, providers.StateStopped) },
		"it vanishes at once": func(sc *scene, id string) { sc.backend.Lose(id) },
	} {
		t.Run(name, func(t *testing.T) {
			sc := newScene(t)
			sc.backend.After(providers.OpCreate, func(context.Context) error {
				fate(sc, sc.backend.Instances()[0].ID)
				return nil
			})
			sc.at(time.Hour, func() {
				require.LessOrEqual(t, sc.backend.Calls(providers.OpCreate), 16)
				require.Greater(t, sc.backend.Calls(providers.OpCreate), 3)
				sc.backend.Heal()
			})
			sc.at(2*time.Hour, func() { require.Equal(t, v1.PhaseRunning, sc.status().Phase) })
			sc.deleteAt(3 * time.Hour)
			sc.runs()
		})
	}
}

func TestOneLossIsNoPattern(t *testing.T) {
	sc := newScene(t)
	for _, at := range []time.Duration{time.Hour, 2 * time.Hour, 3 * time.Hour} {
		sc.at(at, func() { sc.backend.SetState(sc.backend.Instances()[0].ID, providers.StateStopped) })
		sc.at(at+3*time.Minute, func() { require.Equal(t, v1.PhaseRunning, sc.status().Phase) })
	}
	sc.deleteAt(4 * time.Hour)
	sc.runs()
	require.Equal(t, 4, sc.backend.Calls(providers.OpCreate))
}

func TestAnAnswerThatChangesAtEveryLookIsNotAskedForWithoutAPause(t *testing.T) {
	sc := newScene(t)
	n := 0
	sc.backend.Before(providers.OpGet, func(ctx context.Context) error {
		if n++; n%2 == 0 {
			return fake.Failing(providers.ErrQuotaExceeded)(ctx)
		}
		return nil
	})
	sc.at(time.Hour, func() {
		require.LessOrEqual(t, sc.backend.Calls(providers.OpGet), 60)
		sc.backend.Heal()
	})
	sc.deleteAt(2 * time.Hour)
	sc.runs()
}

// Field report 7.
func TestWhatTheBackendStillHidesIsNotMadeTwice(t *testing.T) {
	sc := newScene(t)
	sc.backend.After(providers.OpCreate, func(context.Context) error {
		sc.backend.Hide(sc.backend.Instances()[0].ID)
		return nil
	})
	sc.at(30*time.Second, func() { sc.backend.Show(sc.backend.Instances()[0].ID) })
	sc.at(5*time.Minute, func() { require.Equal(t, v1.PhaseRunning, sc.status().Phase) })
	sc.deleteAt(time.Hour)
	sc.runs()
	require.Equal(t, 1, sc.backend.Calls(providers.OpCreate))
}

func TestDeleteWaitsForWhatTheBackendStillHides(t *testing.T) {
	sc := newScene(t)
	sc.backend.After(providers.OpCreate, func(ctx context.Context) error { // made, hidden, and the answer is lost
		sc.backend.Hide(sc.backend.Instances()[0].ID)
		return fake.Failing(providers.ErrTransient)(ctx)
	})
	sc.deleteAt(time.Second)
	sc.at(150*time.Second, func() { sc.backend.Show(sc.backend.Instances()[0].ID) })
	sc.ExecuteWorkflow(WorkflowType, Input{Spec: spec})
	require.NoError(t, sc.GetWorkflowError())
	require.Empty(t, sc.backend.Instances())
}

func TestHintsDoNotHurryADoubt(t *testing.T) {
	sc := newScene(t)
	sc.at(30*time.Minute, func() {
		id := sc.backend.Instances()[0].ID
		sc.backend.Hide(id)
		for i := range 6 {
			sc.RegisterDelayedCallback(func() { sc.SignalWorkflow(SignalHint, Hint{}) }, time.Duration(i)*300*time.Millisecond)
		}
		sc.RegisterDelayedCallback(func() { sc.backend.Show(id) }, 3*time.Second)
	})
	sc.deleteAt(time.Hour)
	sc.runs()
	require.Equal(t, 1, sc.backend.Calls(providers.OpCreate))
}

func TestALatchOutlivesARun(t *testing.T) {
	sc := newScene(t)
	s := State{Spec: spec, Generation: 1, Attempt: 1, Creating: true, Patient: true}
	s.MadeFrom = specHash(spec, "")
	s.Wait = &pending{Pace: paceProbe, Until: sc.Now().Add(40 * time.Minute)}
	sc.at(39*time.Minute, func() { require.Zero(t, sc.backend.Calls(providers.OpCreate)) })
	sc.at(41*time.Minute, func() { require.Equal(t, 1, sc.backend.Calls(providers.OpCreate)) })
	sc.deleteAt(time.Hour)
	sc.ExecuteWorkflow(WorkflowType, Input{UID: testUID, State: &s})
	require.NoError(t, sc.GetWorkflowError())
	require.Empty(t, sc.backend.Instances())
}

func TestARunningProxyOutlivesItsSecret(t *testing.T) {
	sc := newScene(t)
	ref := v1.SecretRef{Name: "init", Key: "user-data"}
	sc.spec.CloudInit.SecretRef = &ref
	file := filepath.Join(sc.secrets, ref.Name, ref.Key)
	require.NoError(t, os.Mkdir(filepath.Dir(file), 0o700))
	require.NoError(t, os.WriteFile(file, []byte("one"), 0o600))
	sc.at(time.Hour, func() {
		require.NoError(t, os.Remove(file))
		sc.tell(UpdateApply, "same", ApplyInput{Spec: sc.spec})
	})
	sc.at(70*time.Minute, func() {
		require.Equal(t, v1.PhaseRunning, sc.status().Phase)
		c := sc.condition(v1.ConditionProvisioned)
		require.Equal(t, v1.ReasonTransientError, c.Reason)
		require.Contains(t, c.Message, "user-data")
		sc.backend.Lose(sc.backend.Instances()[0].ID)
	})
	sc.at(90*time.Minute, func() {
		require.Equal(t, v1.PhasePending, sc.status().Phase, "its loss was seen")
		require.NoError(t, os.WriteFile(file, []byte("one"), 0o600))
	})
	sc.at(2*time.Hour, func() { require.Equal(t, v1.PhaseRunning, sc.status().Phase) })
	sc.deleteAt(3 * time.Hour)
	sc.runs()
}

func TestAnUnchangedSpecWithASecretReleasesNothing(t *testing.T) {
	sc := newScene(t)
	ref := v1.SecretRef{Name: "init", Key: "user-data"}
	sc.spec.CloudInit.SecretRef = &ref
	require.NoError(t, os.Mkdir(filepath.Join(sc.secrets, ref.Name), 0o700))
	require.NoError(t, os.WriteFile(filepath.Join(sc.secrets, ref.Name, ref.Key), []byte("one"), 0o600))
	sc.backend.Before(providers.OpCreate, fake.Failing(providers.ErrPermanent))
	for i := range 20 {
		sc.at(time.Duration(i+1)*10*time.Second, func() {
			sc.tell(UpdateApply, "same-"+strconv.Itoa(i), ApplyInput{Spec: sc.spec})
		})
	}
	sc.at(10*time.Minute, func() {
		require.Equal(t, 1, sc.backend.Calls(providers.OpCreate))
		sc.tell(UpdateDelete, "delete", Why{})
	})
	sc.runs()
}

func TestTheFixOfASpecIsNotLatchedByItsOldFailure(t *testing.T) {
	sc := newScene(t, fake.WithProvisioning())
	other := spec
	other.Placement.Image = "the right one"
	sc.backend.FailCreate(providers.ErrPermanent, "no such image")
	sc.backend.After(providers.OpCreate, func(context.Context) error {
		sc.backend.After(providers.OpCreate, nil)
		sc.RegisterDelayedCallback(func() { sc.tell(UpdateApply, "fix", ApplyInput{Spec: other}) }, 0)
		return nil
	})
	sc.at(5*time.Minute, func() {
		require.Equal(t, 2, sc.backend.Calls(providers.OpCreate))
		require.Equal(t, v1.PhaseProvisioning, sc.status().Phase)
	})
	sc.deleteAt(time.Hour)
	sc.runs()
}

func TestAnAdoptedInstanceIsNotForgotten(t *testing.T) {
	sc := newScene(t)
	sc.backend.Plant(providers.Instance{
		ID: fake.ID(providers.NameFromUID("adopted")), UID: "adopted", Installation: fake.DefaultInstallation,
		Owner: "default/a", State: providers.StateRunning, IP: "127.0.0.9",
	})
	sc.backend.Before(providers.OpCreate, fake.Failing(providers.ErrPermanent))
	sc.deleteAt(time.Minute)
	sc.ExecuteWorkflow(WorkflowType, Input{Spec: spec, UID: "adopted"})
	require.NoError(t, sc.GetWorkflowError())
	require.Empty(t, sc.backend.Instances())
}

func TestTheBackendsOwnReasonIsShown(t *testing.T) {
	sc := newScene(t, fake.WithProvisioning())
	sc.at(time.Minute, func() { sc.backend.SetReason(sc.backend.Instances()[0].ID, "ErrImagePull") })
	sc.at(5*time.Minute, func() {
		require.Contains(t, sc.condition(v1.ConditionProvisioned).Message, "ErrImagePull")
	})
	sc.deleteAt(time.Hour)
	sc.runs()
}

func TestWhatACallerSaysIsCut(t *testing.T) {
	sc := newScene(t)
	long := strings.Repeat("é", 1<<16)
	sc.at(time.Minute, func() {
		sc.tell(UpdateHold, "hold", Why{Reason: long})
		sc.SignalWorkflow(SignalHealth, HealthReport{Reason: long, Message: long, EgressIP: long})
	})
	sc.at(2*time.Minute, func() {
		require.LessOrEqual(t, len(sc.condition(v1.ConditionHeld).Message), 1100)
		c := sc.condition(v1.ConditionHealthy)
		require.LessOrEqual(t, len(c.Message)+len(c.Reason)+len(sc.status().EgressIP), 1300)
		sc.SignalWorkflow(SignalDelete, Why{Reason: long})
	})
	sc.runs()
}

// The watch of a running instance waits at the server: to cancel it is one more workflow
// task of every delete.
func TestADeleteLeavesTheSlowWatchAndAnythingElseCancelsIt(t *testing.T) {
	t.Run("delete", func(t *testing.T) {
		sc := newScene(t)
		cancelled := sc.cancelled()
		sc.deleteAt(time.Hour / 2)
		sc.runs()
		require.Empty(t, *cancelled)
	})
	t.Run("delete, in a run of before", func(t *testing.T) {
		sc := newScene(t)
		sc.OnGetVersion(changeRound, workflow.Version(versionFirst), workflow.Version(versionNewest)).
			Return(workflow.Version(versionPrepare))
		cancelled := sc.cancelled()
		sc.deleteAt(time.Hour / 2)
		sc.runs()
		require.Equal(t, []string{"AwaitChange"}, *cancelled)
	})
	t.Run("replace", func(t *testing.T) {
		sc := newScene(t)
		cancelled := sc.cancelled()
		sc.at(time.Hour/2, func() { sc.tell(UpdateReplace, "replace", ReplaceInput{}) })
		sc.deleteAt(time.Hour)
		sc.runs()
		require.Equal(t, []string{"AwaitChange"}, *cancelled)
	})
}

// cancelled returns the activities that are cancelled, by their names.
func (sc *scene) cancelled() *[]string {
	names := &[]string{}
	sc.SetOnActivityCanceledListener(func(info *activity.Info) { *names = append(*names, info.ActivityType.Name) })
	return names
}
