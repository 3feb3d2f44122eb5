package providertest_test

import (
	"context"
	"errors"

	"github.com/egressfleet/egressfleet/providers"
)

func prepareMutants() map[string]mutant {
	const makesNothing, returns = "UnpreparedCreateMakesNothing", "PrepareReturnsWithItsContext"
	return map[string]mutant{
		"a create fetches by itself what it lacks": {
			row: makesNothing, says: "is a *NotPreparedError", also: []string{returns},
			twist: func(w *twisted) {
				w.create = func(ctx context.Context, req providers.CreateRequest) (string, error) {
					id, err := w.Faults.Create(ctx, req)
					if _, lacking := errors.AsType[*providers.NotPreparedError](err); !lacking {
						return id, err
					}
					if err := w.Faults.Prepare(ctx, req); err != nil {
						return "", err
					}
					return w.Faults.Create(ctx, req)
				}
			},
		},
		"a create that lacks something is latched": {
			row: makesNothing, says: "Transient",
			twist: func(w *twisted) {
				w.create = func(ctx context.Context, req providers.CreateRequest) (string, error) {
					id, err := w.Faults.Create(ctx, req)
					if lacking, ok := errors.AsType[*providers.NotPreparedError](err); ok {
						return "", providers.Wrap(providers.ErrPermanent, providers.OpCreate, "lab", "", lacking)
					}
					return id, err
				}
			},
		},
		"a prepare fetches nothing": {
			row: "PreparedCreateIsMade", says: "is not there yet", also: []string{returns},
			twist: func(w *twisted) {
				w.prepare = func(context.Context, providers.CreateRequest) error { return nil }
			},
		},
		"a prepare makes the instance": {
			row: "PrepareMakesNoInstance", says: "Should be empty",
			twist: func(w *twisted) {
				w.prepare = func(ctx context.Context, req providers.CreateRequest) error {
					if err := w.Faults.Prepare(ctx, req); err != nil {
						return err
					}
					_, err := w.Faults.Create(ctx, req)
					return err
				}
			},
		},
		"a prepare goes on when nobody wants it": {
			row: returns, says: "a Prepare that was ended",
			twist: func(w *twisted) {
				w.prepare = func(ctx context.Context, req providers.CreateRequest) error {
					return w.Faults.Prepare(context.WithoutCancel(ctx), req)
				}
			},
		},
	}
}
