package providertest_test

import (
	"context"
	"log/slog"
	"strings"
	"sync"
	"time"

	"go.opentelemetry.io/otel/trace"

	"github.com/egressfleet/egressfleet/providers"
	"github.com/egressfleet/egressfleet/testsuite/fake"
)

func axesCallMutants() map[string]mutant {
	mounted := choosing(func(p *providers.Profile) { p.Credentials = providers.CredentialsMountedFiles })
	return map[string]mutant{
		"a credential that is missing is Permanent": {
			row: "CredentialsAreReadAtTheCall", says: "create with no credential", opts: mounted,
			twist: func(w *twisted) {
				w.create = func(ctx context.Context, req providers.CreateRequest) (string, error) {
					id, err := w.Faults.Create(ctx, req)
					if err != nil && strings.Contains(err.Error(), "no such file") {
						err = providers.Wrap(providers.ErrPermanent, providers.OpCreate, "lab", id, err)
					}
					return id, err
				}
			},
		},
		"a credential that makes no sense is Transient": {
			row: "CredentialsAreReadAtTheCall", says: "with an unreadable credential", opts: mounted,
			twist: func(w *twisted) {
				w.says(func(e *providers.Error) error {
					if strings.Contains(e.Error(), "holds no line") {
						e.Class = providers.ErrTransient
					}
					return e
				})
			},
		},
		"a credential is read once": {
			row: "CredentialsAreReadAtTheCall", says: "no such file", opts: mounted,
			twist: func(w *twisted) {
				var mu sync.Mutex
				var first error
				w.create = func(ctx context.Context, req providers.CreateRequest) (string, error) {
					mu.Lock()
					defer mu.Unlock()
					id, err := w.Faults.Create(ctx, req)
					if err != nil && strings.Contains(err.Error(), "no such file") {
						first = err
					}
					if first != nil {
						return "", first
					}
					return id, err
				}
			},
		},
		"a cancelled call tears down the connection": {
			row: "CancelledCallLeavesOthersAlone", says: "it ends with the one that was called off",
			twist: func(w *twisted) {
				shared, tear := w.shares()
				w.get = func(ctx context.Context, id string) (*providers.Instance, error) {
					began := ctx.Err() == nil // what never began tears nothing down
					found, err := shared(ctx, id)
					if began && ctx.Err() != nil {
						tear()
					}
					return found, err
				}
			},
		},
		"a check that times out tears down the connection": {
			row: "CheckCalledOffLeavesOthersAlone", says: "it ends with the one that was called off",
			twist: func(w *twisted) {
				shared, tear := w.shares()
				w.get = shared
				w.check = func(ctx context.Context) []providers.TargetStatus {
					began := ctx.Err() == nil
					all := w.Faults.Check(ctx)
					if began && ctx.Err() != nil {
						tear()
					}
					return all
				}
			},
		},
		"a call has no deadline of its own": {
			row: "StalledCallIsGivenUp", says: "waits for its backend longer",
			opts: append(choosing(func(p *providers.Profile) { p.Timeouts = providers.TimeoutsPerCall }),
				fake.WithCallTimeout(time.Hour)),
			twist: func(*twisted) {},
		},
	}
}

func refusalMutants() map[string]mutant {
	identity := choosing(func(p *providers.Profile) { p.Credentials = providers.CredentialsWorkloadIdentity })
	return map[string]mutant{
		"a read of what is forbidden says NotFound": {
			row: "RefusedCredentialIsNeverNotFound", says: "get with a credential that is refused", opts: identity,
			twist: func(w *twisted) {
				w.get = func(ctx context.Context, id string) (*providers.Instance, error) {
					found, err := w.Faults.Get(ctx, id)
					if err != nil && strings.Contains(err.Error(), "E_DENIED") {
						err = notFound(id)
					}
					return found, err
				}
			},
		},
		"a delete of what is forbidden succeeds": {
			row: "RefusedCredentialIsNeverNotFound", says: "delete with a credential that is refused", opts: identity,
			twist: func(w *twisted) {
				w.remove = func(ctx context.Context, id string) error {
					err := w.Faults.Delete(ctx, id)
					if err != nil && strings.Contains(err.Error(), "E_DENIED") {
						return nil
					}
					return err
				}
			},
		},
	}
}

// shares returns reads over a connection of all of them, and what tears it down.
func (w *twisted) shares() (get func(context.Context, string) (*providers.Instance, error), tear func()) {
	shared, cancelAll := context.WithCancel(context.Background())
	get = func(ctx context.Context, id string) (*providers.Instance, error) {
		own, cancel := context.WithCancel(ctx)
		defer cancel()
		defer context.AfterFunc(shared, cancel)()
		return w.Faults.Get(own, id)
	}
	return get, func() {
		if shared.Err() == nil {
			cancelAll()
			runtimeYield()
		}
	}
}

func axesTraceMutants() map[string]mutant {
	tiered := choosing(func(p *providers.Profile) { p.Logging = providers.LoggingTiered })
	spans := choosing(func(p *providers.Profile) { p.ChildSpans = providers.SpansDecorator })
	return map[string]mutant{
		"the logger is not the context's": {
			row: "LogHasTheTiersOfTheProfile", says: "logs its outcome", opts: tiered,
			twist: func(w *twisted) {
				w.gets(func(ctx context.Context) context.Context {
					return providers.WithLogger(ctx, slog.New(slog.DiscardHandler))
				})
			},
		},
		"there are no finer tiers": {
			row: "LogHasTheTiersOfTheProfile", says: "finer tiers than outcomes",
			opts: choosing(func(p *providers.Profile) { p.Logging = providers.LoggingOutcomeOnly }),
			twist: func(w *twisted) {
				w.profile = func() providers.Profile {
					p := w.Faults.Profile()
					p.Logging = providers.LoggingTiered
					return p
				}
			},
		},
		"a call is logged for everybody": {
			row: "LogHasTheTiersOfTheProfile", says: "that nobody asked for", opts: tiered,
			twist: func(w *twisted) {
				w.gets(func(ctx context.Context) context.Context {
					providers.Logger(ctx).InfoContext(ctx, "get")
					return ctx
				})
			},
		},
		"there are no child spans": {
			row: "BackendCallsAreChildSpans", says: "has a span for each backend call",
			also: []string{"SecretsStayOutOfSpans", "OperationSpansAreTheDecorators"},
			twist: func(w *twisted) {
				w.profile = func() providers.Profile {
					p := w.Faults.Profile()
					p.ChildSpans = providers.SpansTransport
					return p
				}
			},
		},
		"a provider opens the operation's span again": {
			row: "BackendCallsAreChildSpans", says: "is the decorator's span", opts: spans,
			also:  []string{"OperationSpansAreTheDecorators"},
			twist: func(w *twisted) { w.traces("provider.get") },
		},
		"a backend call is a trace of its own": {
			row: "BackendCallsAreChildSpans", says: "trace of the span", opts: spans,
			also:  []string{"OperationSpansAreTheDecorators"},
			twist: func(w *twisted) { w.traces("fake.get", trace.WithNewRoot()) },
		},
	}
}

// gets changes the context of every Get.
func (w *twisted) gets(change func(context.Context) context.Context) {
	w.get = func(ctx context.Context, id string) (*providers.Instance, error) {
		return w.Faults.Get(change(ctx), id)
	}
}

// traces runs every Get in one more span.
func (w *twisted) traces(name string, opts ...trace.SpanStartOption) {
	w.get = func(ctx context.Context, id string) (*providers.Instance, error) {
		tracer := trace.SpanFromContext(ctx).TracerProvider().Tracer("mutant")
		ctx, span := tracer.Start(ctx, name, opts...)
		defer span.End()
		return w.Faults.Get(ctx, id)
	}
}
