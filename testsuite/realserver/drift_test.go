package realserver

import (
	"context"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/egressfleet/egressfleet/activities"
	v1 "github.com/egressfleet/egressfleet/api/v1"
	"github.com/egressfleet/egressfleet/providers"
	"github.com/egressfleet/egressfleet/starter/fleet"
	"github.com/egressfleet/egressfleet/worker/hands"
	"github.com/egressfleet/egressfleet/workflows/drift"
)

// watched is the fleet as a drift sweep asks for it, only this lab's proxy.
type watched struct{ l *lab }

func (w watched) Running(ctx context.Context, provider string) (out []activities.Expected, err error) {
	running, err := hands.Watched{Client: w.l.Client}.Running(ctx, provider)
	for _, e := range running {
		if e.Name == w.l.name {
			out = append(out, e)
		}
	}
	return out, err
}

func (w watched) Hint(ctx context.Context, e activities.Expected, h activities.Hint) error {
	return hands.Watched{Client: w.l.Client}.Hint(ctx, e, h)
}

// newDriftLab is a lab whose workers look for drift. The proxy itself looks once an hour.
func newDriftLab(t *testing.T) *lab {
	t.Helper()
	l := newLab(t, quick())
	l.secrets = t.TempDir()
	l.hands = []any{
		&activities.Drift{Instances: l.instances(), Fleet: watched{l}},
		&activities.Orphans{Instances: l.instances(), Names: func() []string { return []string{"fake"} }},
	}
	return l
}

// noticed sweeps until Visibility shows the proxy, and returns the sweep.
func (l *lab) noticed() (s drift.Sweep) {
	l.t.Helper()
	schedule := fleet.DriftSweep()
	schedule.ID = l.name
	require.Eventually(l.t, func() bool {
		var r drift.Result
		require.NoError(l.t, l.RunSweep(l.t.Context(), schedule, drift.Input{}, &r))
		s = r.Sweeps[0]
		return s.Running == 1
	}, soon, tick)
	return s
}

func TestDriftIsNoticedAndThenLookedAt(t *testing.T) {
	for name, tc := range map[string]struct {
		happens func(*lab, string)
		hints   int
		creates int
	}{
		"nothing":    {func(*lab, string) {}, 0, 1},
		"it is gone": {func(l *lab, id string) { l.backend.Lose(id) }, 1, 2},
		"it stopped": {func(l *lab, id string) { l.backend.SetState(id, providers.StateStopped) }, 1, 2},
		"it moved":   {func(l *lab, id string) { l.backend.SetIP(id, "127.9.9.9") }, 1, 1},
		"a listing that shows nothing": {
			func(l *lab, _ string) { l.blind.Store(true) }, 1, 1,
		},
	} {
		t.Run(name, func(t *testing.T) {
			l := newDriftLab(t)
			l.born()
			tc.happens(l, l.backend.Instances()[0].ID)
			require.Equal(t, tc.hints, l.noticed().Hinted)
			require.Eventually(t, func() bool {
				is := l.backend.Instances()
				return l.backend.Calls(providers.OpCreate) == tc.creates && len(is) == 1 && l.get().Status.IP == is[0].IP
			}, soon, tick)
			l.deleted()
		})
	}
}

func TestAnotherContentOfASecretReplacesTheInstance(t *testing.T) {
	l := newDriftLab(t)
	file := filepath.Join(l.secrets, "init", "user-data")
	require.NoError(t, os.Mkdir(filepath.Dir(file), 0o700))
	require.NoError(t, os.WriteFile(file, []byte("one"), 0o600))
	l.work()
	secret := spec
	secret.CloudInit.SecretRef = &v1.SecretRef{Name: "init", Key: "user-data"}
	l.apply("apply", secret)
	l.running()
	require.Zero(t, l.noticed().Hinted)
	require.NoError(t, os.WriteFile(file, []byte("two"), 0o600))
	require.Equal(t, 1, l.noticed().Hinted)
	require.Eventually(t, func() bool { return l.backend.Calls(providers.OpCreate) == 2 }, soon, tick)
	l.running()
	require.Equal(t, "two", string(l.backend.Requests()[1].CloudInit))
	l.deleted()
}
