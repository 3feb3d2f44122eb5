package proxy

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	v1 "github.com/egressfleet/egressfleet/api/v1"
	"github.com/egressfleet/egressfleet/providers"
	"github.com/egressfleet/egressfleet/testsuite/fake"
)

// TestDeleteWorksInEveryPhase: whatever goes on, the proxy ends and nothing is left.
func TestDeleteWorksInEveryPhase(t *testing.T) {
	const at = 30 * time.Minute // of the delete
	tests := map[string]struct {
		opts    []fake.Option
		prepare func(*scene)
		within  time.Duration // of the delete
	}{
		"before the first create, while its secret is not there": {
			prepare: func(sc *scene) { sc.spec.CloudInit.SecretRef = &v1.SecretRef{Name: "no", Key: "such"} },
			within:  time.Minute,
		},
		"while a create is in flight": {
			prepare: func(sc *scene) {
				sc.backend.Before(providers.OpCreate, func(context.Context) error {
					sc.SignalWorkflow(SignalDelete, DeleteInput{Reason: "now"})
					return nil
				})
			},
			within: time.Minute,
		},
		"while it provisions": {
			opts: []fake.Option{fake.WithProvisioning()}, prepare: func(*scene) {}, within: time.Minute,
		},
		"while it runs": {prepare: func(*scene) {}, within: time.Minute},
		"while it is latched": {
			prepare: func(sc *scene) { sc.backend.Before(providers.OpCreate, fake.Failing(providers.ErrPermanent)) },
			within:  time.Minute,
		},
		"while it waits for quota": {
			prepare: func(sc *scene) { sc.backend.Before(providers.OpCreate, fake.Failing(providers.ErrQuotaExceeded)) },
			within:  time.Minute,
		},
		"after a create that failed late": {
			prepare: func(sc *scene) { sc.backend.FailCreate(providers.ErrPermanent, "no such image") }, within: time.Minute,
		},
		"during an outage": {
			prepare: func(sc *scene) {
				sc.at(20*time.Minute, func() { sc.backend.Break(providers.ErrTransient) })
				sc.at(40*time.Minute, sc.backend.Heal)
			},
			within: 20 * time.Minute,
		},
		"while its provider is not configured": {
			prepare: func(sc *scene) {
				sc.at(20*time.Minute, func() { sc.configured = false })
				sc.at(40*time.Minute, func() { sc.configured = true })
			},
			within: 20 * time.Minute,
		},
		"during a replacement": {
			opts: []fake.Option{fake.WithSlowDelete()},
			prepare: func(sc *scene) {
				sc.at(20*time.Minute, func() { sc.tell(UpdateReplace, "replace", Why{}) })
				sc.at(40*time.Minute, sc.backend.FinishDeletes)
			},
			within: 20 * time.Minute,
		},
		"between a loss and its replacement": {
			prepare: func(sc *scene) {
				sc.at(20*time.Minute, func() { sc.backend.Lose(sc.backend.Instances()[0].ID) })
				sc.at(20*time.Minute, func() {
					sc.backend.Before(providers.OpCreate, fake.Failing(providers.ErrTransient))
				})
			},
			within: time.Minute,
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			sc := newScene(t, tc.opts...)
			tc.prepare(sc)
			sc.deleteAt(at)
			begin := sc.Now()
			sc.runs()
			// A wait for the backend adds what it paces itself by.
			require.Less(t, sc.Now().Sub(begin), at+tc.within+5*time.Minute)
		})
	}
}
