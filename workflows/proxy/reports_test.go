package proxy

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	v1 "github.com/egressfleet/egressfleet/api/v1"
	"github.com/egressfleet/egressfleet/providers"
	"github.com/egressfleet/egressfleet/testsuite/fake"
)

// The tests below carry the numbers of docs/field-reports.md: what went wrong in
// systems of this kind. Those that need a real server are in testsuite/realserver.

func TestReport02ALiveInstanceThatIsNotShownOnce(t *testing.T) {
	sc := newScene(t)
	sc.at(30*time.Minute, func() { sc.backend.Before(providers.OpGet, fake.Once(providers.ErrNotFound)) })
	sc.deleteAt(2 * time.Hour)
	sc.runs()
	require.Equal(t, 1, sc.backend.Calls(providers.OpCreate))
}

func TestReport05TheNameIsTakenByItself(t *testing.T) {
	sc := newScene(t)
	sc.backend.After(providers.OpCreate, fake.Once(providers.ErrTransient)) // made, and nobody was told
	sc.at(10*time.Minute, func() {
		require.Equal(t, v1.PhaseRunning, sc.status().Phase)
		require.Len(t, sc.backend.Instances(), 1)
	})
	sc.deleteAt(time.Hour)
	sc.runs()
	for _, req := range sc.backend.Requests() {
		require.Equal(t, 1, req.Attempt, "it is the same create")
	}
}

func TestReport10AListThatShowsNothing(t *testing.T) {
	sc := newScene(t)
	sc.backend.After(providers.OpCreate, fake.Failing(providers.ErrTransient))
	sc.at(time.Minute, func() { sc.backend.Hide(sc.backend.Instances()[0].ID) })
	sc.at(time.Hour, func() {
		require.Len(t, sc.backend.Instances(), 1, "however often it was asked for")
		sc.backend.Show(sc.backend.Instances()[0].ID)
		sc.backend.Heal()
	})
	sc.deleteAt(3 * time.Hour)
	sc.runs()
}

func TestReport11AReplacementWaitsForTheDyingOne(t *testing.T) {
	sc := newScene(t, fake.WithSlowDelete())
	sc.at(10*time.Minute, func() { sc.tell(UpdateReplace, "replace", Why{}) })
	sc.at(10*time.Minute+50*time.Second, func() {
		require.Equal(t, 1, sc.backend.Calls(providers.OpCreate), "the name is still taken")
		require.Equal(t, v1.PhaseReplacing, sc.status().Phase)
	})
	sc.at(11*time.Minute, sc.backend.FinishDeletes)
	sc.at(20*time.Minute, func() {
		require.Equal(t, v1.PhaseRunning, sc.status().Phase)
		require.Equal(t, 2, sc.backend.Requests()[1].Attempt)
		require.False(t, sc.backend.Instances()[0].Deleting, "nothing dying was adopted")
		sc.tell(UpdateDelete, "delete", DeleteInput{})
	})
	sc.at(21*time.Minute, sc.backend.FinishDeletes)
	sc.runs()
}

func TestReport13ADeleteOfWhatWasNeverMade(t *testing.T) {
	sc := newScene(t)
	sc.backend.Before(providers.OpCreate, fake.Failing(providers.ErrQuotaExceeded))
	sc.deleteAt(time.Hour)
	begin := sc.Now()
	sc.runs()
	require.Zero(t, sc.backend.Calls(providers.OpDelete))
	require.Less(t, sc.Now().Sub(begin), time.Hour+3*time.Minute)
}

func TestReport21AnInstanceThatSomebodyTerminated(t *testing.T) {
	sc := newScene(t)
	lost := 30 * time.Minute
	sc.at(lost, func() {
		sc.backend.Lose(sc.backend.Instances()[0].ID)
		sc.SignalWorkflow(SignalHint, Hint{Reason: "not listed"})
	})
	sc.at(lost+time.Minute, func() {
		require.Equal(t, v1.PhaseRunning, sc.status().Phase)
		require.Equal(t, 2, sc.backend.Calls(providers.OpCreate))
	})
	sc.deleteAt(time.Hour)
	sc.runs()
}

func TestReport22ADeleteThatTheCredentialsForbid(t *testing.T) {
	sc := newScene(t)
	sc.at(20*time.Minute, func() { sc.backend.SetState(sc.backend.Instances()[0].ID, providers.StateTerminated) })
	sc.backend.Before(providers.OpDelete, fake.FailingWith(providers.ErrPermanent, "403 credentials revoked"))
	sc.deleteAt(time.Hour)
	sc.at(2*time.Hour, func() {
		c := sc.condition(v1.ConditionDeleting)
		require.Equal(t, v1.ReasonPermanentError, c.Reason)
		require.Contains(t, c.Message, "403 credentials revoked")
		sc.tell(UpdateDelete, "leave", leave)
	})
	require.NotEmpty(t, sc.result().Left)
	require.Equal(t, 1, sc.told("SkipCleanupRequested"), "it is recorded")
}

func TestReport24NoStormWhileTheQuotaIsUsedUp(t *testing.T) {
	sc := newScene(t)
	sc.backend.Before(providers.OpCreate, fake.Failing(providers.ErrQuotaExceeded))
	sc.at(time.Hour, func() {
		require.LessOrEqual(t, sc.backend.Calls(providers.OpCreate), 12)
		require.Greater(t, sc.backend.Calls(providers.OpCreate), 1, "it is tried again")
		require.Empty(t, sc.backend.Instances())
	})
	sc.deleteAt(2 * time.Hour)
	sc.runs()
}

func TestReport25TheUserSeesThatItIsQuota(t *testing.T) {
	sc := newScene(t)
	sc.backend.Before(providers.OpCreate, fake.FailingWith(providers.ErrQuotaExceeded, "CPUS limit 24 in europe-west1"))
	sc.at(time.Hour, func() {
		c := sc.condition(v1.ConditionProvisioned)
		require.Equal(t, v1.ReasonQuotaExceeded, c.Reason)
		require.Contains(t, c.Message, "CPUS limit 24 in europe-west1")
		require.Contains(t, c.Message, "next attempt at ")
		require.False(t, sc.status().NextAttemptAt.IsZero())
		last := sc.timeline()[0]
		require.Equal(t, string(providers.ErrQuotaExceeded), last.Class)
	})
	sc.deleteAt(2 * time.Hour)
	sc.runs()
}

func TestReport26AQuotaThatIsRaisedAndAProviderThatIsAdded(t *testing.T) {
	for name, tc := range map[string]struct{ broken, healed func(*scene) }{
		"quota": {
			func(sc *scene) { sc.backend.Before(providers.OpCreate, fake.Failing(providers.ErrQuotaExceeded)) },
			func(sc *scene) { sc.backend.Heal() },
		},
		"a provider": {
			func(sc *scene) { sc.configured = false }, func(sc *scene) { sc.configured = true },
		},
	} {
		t.Run(name, func(t *testing.T) {
			sc := newScene(t)
			tc.broken(sc)
			sc.at(16*time.Minute, func() { tc.healed(sc) })
			sc.at(62*time.Minute, func() { require.Equal(t, v1.PhaseRunning, sc.status().Phase, "no human acted") })
			sc.deleteAt(2 * time.Hour)
			sc.runs()
		})
	}
}

func TestReport29AStateThatNobodyKnows(t *testing.T) {
	sc := newScene(t)
	sc.at(20*time.Minute, func() { sc.backend.SetState(sc.backend.Instances()[0].ID, "WEIRD") })
	sc.at(40*time.Minute, func() {
		require.Equal(t, v1.PhaseRunning, sc.status().Phase)
		require.Equal(t, 1, sc.told(v1.ReasonInstanceStopped))
	})
	sc.deleteAt(time.Hour)
	sc.runs()
	require.Equal(t, 2, sc.backend.Calls(providers.OpCreate))
}

func TestReport39ASlowBootIsNotMadeAgain(t *testing.T) {
	for limit, late := range map[v1.Duration]int{"30m": 0, "10m": 1} {
		t.Run(string(limit), func(t *testing.T) {
			sc := newScene(t, fake.WithProvisioning()).impatient()
			sc.spec.Deadlines.Provisioning = limit
			sc.at(25*time.Minute, func() {
				require.Equal(t, late, sc.told(v1.ReasonProvisioningTimeout))
				sc.backend.Finish(sc.backend.Instances()[0].ID)
			})
			sc.at(40*time.Minute, func() { require.Equal(t, v1.PhaseRunning, sc.status().Phase) })
			sc.deleteAt(time.Hour)
			sc.runs()
			require.Equal(t, 1, sc.backend.Calls(providers.OpCreate))
		})
	}
}

func TestReport40NoAddressYetIsNeitherDoneNorAnError(t *testing.T) {
	sc := newScene(t, fake.WithProvisioning())
	sc.at(time.Second, func() {
		sc.backend.Finish(sc.backend.Instances()[0].ID)
		sc.backend.SetIP(sc.backend.Instances()[0].ID, "") // it runs, and no lease is seen yet
	})
	sc.at(5*time.Minute, func() {
		require.Equal(t, v1.PhaseProvisioning, sc.status().Phase)
		require.Equal(t, v1.ReasonProvisioning, sc.condition(v1.ConditionProvisioned).Reason)
		sc.backend.SetIP(sc.backend.Instances()[0].ID, "127.0.0.7")
	})
	sc.at(6*time.Minute, func() { require.Equal(t, "127.0.0.7", sc.status().IP) })
	sc.deleteAt(time.Hour)
	sc.runs()
}

func TestReport42ADeleteThatWasTakenAndNeverCameToAnything(t *testing.T) {
	sc := newScene(t, fake.WithSlowDelete()).impatient()
	sc.deleteAt(time.Minute)
	sc.at(time.Hour, func() {
		require.Equal(t, v1.ReasonStuckDeleting, sc.condition(v1.ConditionDeleting).Reason)
		require.Equal(t, 1, sc.told(v1.ReasonStuckDeleting))
		sc.backend.FinishDeletes()
	})
	sc.runs()
}
