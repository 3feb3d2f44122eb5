package providertest_test

import (
	"context"
	"log/slog"
	"slices"

	"github.com/egressfleet/egressfleet/providers"
)

// blindListMutants are lists that show less than they know.
func blindListMutants() map[string]mutant {
	return map[string]mutant{
		"an instance without a UID is not listed": {
			row: "WithoutUIDIsListed", says: "an instance without a UID is listed",
			twist: func(w *twisted) {
				w.list = func(ctx context.Context) ([]providers.Instance, error) {
					all, err := w.Faults.ListByTag(ctx)
					return slices.DeleteFunc(all, func(i providers.Instance) bool { return i.UID == "" }), err
				}
			},
		},
		"a UID that is missing is made up": {
			row: "WithoutUIDIsListed", says: "which has none",
			twist: func(w *twisted) {
				w.listShows(func(i *providers.Instance) {
					if i.UID == "" {
						i.UID = i.ID
					}
				})
			},
		},
		"a list has no states": {
			row: "ListShowsStateAndAddress", says: "the list shows the instance as Running",
			also: []string{"UnknownStateIsStopped"},
			twist: func(w *twisted) {
				w.listShows(func(i *providers.Instance) { i.State, i.IP = "", "" })
			},
		},
		"a list shows the address of another instance": {
			row: "ListShowsStateAndAddress", says: "address of",
			twist: func(w *twisted) {
				w.listShows(func(i *providers.Instance) {
					if i.IP != "" {
						i.IP = "127.8.8.8"
					}
				})
			},
		},
		"a list leaves a part out without a word": {
			row: "LeftOutIsLogged", says: "the log names what the list left out",
			opts: choosing(func(p *providers.Profile) {
				p.ListPartial, p.Logging = providers.ListOmitUnreachable, providers.LoggingOutcomeOnly
			}),
			twist: func(w *twisted) {
				w.list = func(ctx context.Context) ([]providers.Instance, error) {
					all, err := w.Faults.ListByTag(providers.WithLogger(ctx, slog.New(slog.DiscardHandler)))
					providers.Logger(ctx).Log(ctx, providers.LevelOutcome, "list")
					return all, err
				}
			},
		},
	}
}
