package providertest_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
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
		return does(func(ctx context.Context) {
			_, span := otel.Tracer("lab").Start(ctx, name, opts...)
			span.End()
		})
	}
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
		},
		"a span is opened for nobody": {
			row: "NoSpanWithoutACaller", says: "lab.Refresh", twist: opens("lab.Refresh"),
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
			row: "EachCallHasItsLogger", says: "lines of one call at the logger of another",
			twist: func(w *twisted) {
				var kept atomic.Pointer[slog.Logger]
				meet := meeting(5) // two creates come one by one, and then several
				w.creates(func(ctx context.Context, req providers.CreateRequest) {
					kept.Store(providers.Logger(ctx))
					meet()
					kept.Load().Info("create", slog.String("name", req.Name))
				})
			},
		},
		"lines are promised and there are none": {
			row: "EachCallHasItsLogger", says: "the profile promises a line",
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
			twist: func(w *twisted) {
				w.create = func(_ context.Context, req providers.CreateRequest) (string, error) {
					return w.Faults.Create(context.Background(), req)
				}
			},
		},
		"the backend is not told that the caller has gone": {
			row: "ContextReachesTheBackend", says: "goes on after its caller has gone",
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

func payloadMutants() map[string]mutant {
	sent := func(change func([]byte) []byte) func(*twisted) {
		return func(w *twisted) {
			w.asks(func(req *providers.CreateRequest) { req.CloudInit = change(bytes.Clone(req.CloudInit)) })
		}
	}
	refuses := func(class providers.Class, err func(req providers.CreateRequest) error) func(*twisted) {
		return func(w *twisted) {
			w.create = func(ctx context.Context, req providers.CreateRequest) (string, error) {
				if err := err(req); err != nil {
					return "", providers.Wrap(class, providers.OpCreate, "lab", "", err)
				}
				return w.Faults.Create(ctx, req)
			}
		}
	}
	return map[string]mutant{
		"a scratch file stays": {
			row: "ScratchGoesWithTheCall", says: "create leaves scratch files behind",
			twist: func(w *twisted) {
				w.creates(func(context.Context, providers.CreateRequest) {
					if f, err := os.CreateTemp("", "seed-*.iso"); err == nil {
						_ = f.Close()
						w.After(providers.OpDelete, func(context.Context) error { return os.Remove(f.Name()) })
					}
				})
			},
		},
		"a create writes where the worker was started": {
			row: "ScratchGoesWithTheCall", says: "writes where the worker was started",
			twist: func(w *twisted) {
				const here = "seed-of-a-mutant.iso"
				w.creates(func(context.Context, providers.CreateRequest) { _ = os.WriteFile(here, nil, 0o600) })
				w.remove = func(ctx context.Context, id string) error {
					_ = os.Remove(here)
					return w.Faults.Delete(ctx, id)
				}
			},
		},
		"cloud-init loses its edges": {
			row: "CloudInitArrivesWhole", says: "the guest gets", twist: sent(bytes.TrimSpace),
		},
		"cloud-init is taken for text": {
			row: "CloudInitArrivesWhole", says: "the guest gets",
			twist: sent(func(data []byte) []byte { return bytes.ToValidUTF8(data, []byte("?")) }),
		},
		"cloud-init is a template": {
			row: "CloudInitArrivesWhole", says: "the guest gets",
			twist: sent(func(data []byte) []byte { return bytes.ReplaceAll(data, []byte("{{ y }}"), nil) }),
		},
		"cloud-init is cut off": {
			row: "CloudInitArrivesWhole", says: "the guest gets",
			twist: sent(func(data []byte) []byte { return data[:min(len(data), maxCloudInit-1)] }),
		},
		"too much cloud-init is tried again and again": {
			row: "TooLargeCloudInitIsPermanent", says: "class of",
			twist: refuses(providers.ErrTransient, func(req providers.CreateRequest) error {
				return tooLarge(req, "cloudInit: %d bytes are more than %d", len(req.CloudInit), maxCloudInit)
			}),
		},
		"nobody is told the limit": {
			row: "TooLargeCloudInitIsPermanent", says: "the error names the field, the size and the limit",
			twist: refuses(providers.ErrPermanent, func(req providers.CreateRequest) error {
				return tooLarge(req, "cloudInit: %d bytes are too many", len(req.CloudInit))
			}),
		},
		"too much cloud-init is refused when the instance is there": {
			row: "TooLargeCloudInitIsPermanent", says: "a refused create makes nothing",
			twist: refusesLate(func(req providers.CreateRequest) error {
				return tooLarge(req, "cloudInit: %d bytes are more than %d", len(req.CloudInit), maxCloudInit)
			}),
		},
		"an odd zone is refused when the instance is there": {
			row: "PlacementIsNoPath", says: "a refused create makes nothing",
			twist: refusesLate(func(req providers.CreateRequest) error {
				return odd(req.Placement.Zone, fmt.Sprintf("placement.zone: %q", req.Placement.Zone))
			}),
		},
		"a name that is no label is refused when an instance is there": {
			row: "NameIsALabel", says: "a refused create makes nothing",
			twist: refusesLate(func(req providers.CreateRequest) error { return odd(req.Name, "name: odd") }),
		},
		"an image is a path": {
			row: "PlacementIsNoPath", says: "becomes a file elsewhere",
			twist: func(w *twisted) {
				w.creates(func(_ context.Context, req providers.CreateRequest) {
					if path := req.Placement.Image; strings.HasSuffix(path, "/relative") {
						_ = os.WriteFile(filepath.Join(os.TempDir(), path), nil, 0o600)
					}
				})
			},
		},
		"a zone is a whole path": {
			row: "PlacementIsNoPath", says: "becomes a file elsewhere",
			twist: func(w *twisted) {
				w.creates(func(_ context.Context, req providers.CreateRequest) {
					if path := req.Placement.Zone; strings.HasSuffix(path, "/absolute") {
						_ = os.WriteFile(path, nil, 0o600)
					}
				})
			},
		},
		"an odd image tears the line of the error": {
			row: "PlacementIsNoPath", says: "the error names the value, quoted",
			twist: refuses(providers.ErrPermanent, func(req providers.CreateRequest) error {
				return odd(req.Placement.Image, "placement.image: "+req.Placement.Image)
			}),
		},
		"an odd region is refused without its field": {
			row: "PlacementIsNoPath", says: "the error names the field",
			twist: refuses(providers.ErrPermanent, func(req providers.CreateRequest) error {
				return odd(req.Placement.Region, fmt.Sprintf("bad value %q", req.Placement.Region))
			}),
		},
		"a name is made to fit": {
			row: "NameIsALabel", says: "is no DNS label",
			twist: func(w *twisted) {
				w.asks(func(req *providers.CreateRequest) { req.Name = providers.NameFromUID(req.UID) })
			},
		},
		"a name that is no label is tried again": {
			row: "NameIsALabel", says: "the name",
			twist: func(w *twisted) {
				w.says(func(e *providers.Error) error { e.Class = providers.ErrTransient; return e })
			},
		},
	}
}

// refusesLate makes the instance, under a name that fits, and then says why it must not be.
func refusesLate(why func(providers.CreateRequest) error) func(*twisted) {
	return func(w *twisted) {
		w.create = func(ctx context.Context, req providers.CreateRequest) (string, error) {
			refusal := why(req)
			if refusal == nil {
				return w.Faults.Create(ctx, req)
			}
			req.Name = providers.NameFromUID(req.UID)
			_, _ = w.Faults.Create(ctx, req)
			return "", providers.Wrap(providers.ErrPermanent, providers.OpCreate, "lab", "", refusal)
		}
	}
}

func tooLarge(req providers.CreateRequest, format string, args ...any) error {
	if len(req.CloudInit) <= maxCloudInit {
		return nil
	}
	return fmt.Errorf(format, args...)
}

// odd refuses a value that has a line of its own.
func odd(value, text string) error {
	if !strings.Contains(value, "\n") {
		return nil
	}
	return errors.New(text)
}
