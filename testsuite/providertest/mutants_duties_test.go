package providertest_test

import (
	"context"
	"fmt"
	"log"
	"log/slog"
	"sync"
	"sync/atomic"

	"github.com/prometheus/client_golang/prometheus"
	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/trace"

	"github.com/egressfleet/egressfleet/providers"
)

// counter is registered where the process shows it, once a mutant counts.
var counter = sync.OnceValue(func() prometheus.Counter {
	c := prometheus.NewCounter(prometheus.CounterOpts{Name: "lab_requests_total"})
	prometheus.MustRegister(c)
	return c
})

func dutyMutants() map[string]mutant {
	// does runs something in each create.
	does := func(do func(context.Context)) func(*twisted) {
		return func(w *twisted) {
			w.creates(func(ctx context.Context, _ providers.CreateRequest) { do(ctx) })
		}
	}
	opens := func(name string, opts ...trace.SpanStartOption) func(*twisted) {
		return does(func(ctx context.Context) { childSpan(ctx, name, opts...).End() })
	}
	outcomes := choosing(func(p *providers.Profile) { p.Logging = providers.LoggingOutcomeOnly })
	return map[string]mutant{
		"an operation has a span of the provider": {
			row: "OperationSpansAreTheDecorators", says: "is the decorators'", twist: opens("provider.create"),
		},
		"a backend call leaves the trace": {
			row: "OperationSpansAreTheDecorators", says: "is no child of its caller's",
			twist: opens("lab.Insert", trace.WithNewRoot()),
		},
		"child spans are promised and there are none": {
			row: "OperationSpansAreTheDecorators", says: "the profile promises child spans", twist: promisesSpans,
			also: []string{"SecretsStayOutOfSpans", "BackendCallsAreChildSpans"},
		},
		"a span is opened for nobody": {
			row: "NoSpanWithoutACaller", says: "lab.Refresh",
			twist: does(func(ctx context.Context) {
				if !trace.SpanContextFromContext(ctx).IsValid() {
					_, span := otel.Tracer("lab").Start(ctx, "lab.Refresh")
					span.End()
				}
			}),
		},
		"the logger is kept": {
			row: "EachCallHasItsLogger", says: "the logger of an earlier one",
			twist: func(w *twisted) {
				var kept atomic.Pointer[slog.Logger]
				w.creates(func(ctx context.Context, req providers.CreateRequest) {
					kept.CompareAndSwap(nil, providers.Logger(ctx))
					kept.Load().Info("create", slog.String("name", req.Name))
				})
			},
		},
		"the logger is that of the last call": {
			row: "EachCallHasItsLogger", says: "lines of one call at the logger of another", opts: outcomes,
			twist: func(w *twisted) {
				var kept atomic.Pointer[slog.Logger]
				meet := meeting(5) // two creates come one by one, and then several
				w.creates(func(ctx context.Context, req providers.CreateRequest) {
					kept.Store(providers.Logger(ctx))
					meet()
					kept.Load().Log(ctx, providers.LevelOutcome, "create", slog.String("name", req.Name))
				})
			},
		},
		"lines are promised and there are none": {
			row: "EachCallHasItsLogger", says: "the profile promises a line",
			also: []string{"LogHasTheTiersOfTheProfile"},
			twist: func(w *twisted) {
				w.profile = func() providers.Profile {
					p := w.Faults.Profile()
					p.Logging = providers.LoggingOutcomeOnly
					return p
				}
			},
		},
		"the backend gets no context": {
			row: "ContextReachesTheBackend", says: "has not the context of its caller",
			also: []string{
				"CreateNeverSaysNotFound", "EndedContextReturnsAtOnce", "CancelledCallReturns",
				"SecretsSurviveAStall",
			},
			twist: func(w *twisted) {
				w.create = func(_ context.Context, req providers.CreateRequest) (string, error) {
					return w.Faults.Create(context.Background(), req)
				}
			},
		},
		"the backend is not told that the caller has gone": {
			row: "ContextReachesTheBackend", says: "goes on after its caller has gone",
			also: []string{"EndedContextReturnsAtOnce", "CancelledCallReturns", "SecretsSurviveAStall"},
			twist: func(w *twisted) {
				w.remove = func(ctx context.Context, id string) error {
					return w.Faults.Delete(context.WithoutCancel(ctx), id)
				}
			},
		},
		"a line goes to stdout": {
			row: "LeavesTheProcessAlone", says: "writes to stdout",
			twist: does(func(context.Context) { fmt.Println("creating") }),
		},
		"a line goes to stderr": {
			row: "LeavesTheProcessAlone", says: "writes to stderr",
			twist: does(func(context.Context) { println("creating") }),
		},
		"a line goes to the default logger": {
			row: "LeavesTheProcessAlone", says: "or to a default logger",
			twist: does(func(context.Context) { slog.Default().Debug("creating") }),
		},
		"a line goes to the oldest logger": {
			row: "LeavesTheProcessAlone", says: "or to a default logger",
			twist: does(func(context.Context) { log.Print("creating") }),
		},
		"requests are counted twice": {
			row: "LeavesTheProcessAlone", says: "lab_requests_total",
			twist: does(func(context.Context) { counter().Inc() }),
		},
		"a span has no context at all": {
			row: "LeavesTheProcessAlone", says: "lab.Connect",
			twist: does(func(context.Context) {
				_, span := otel.Tracer("lab").Start(context.Background(), "lab.Connect")
				span.End()
			}),
		},
	}
}
