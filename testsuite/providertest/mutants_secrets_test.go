package providertest_test

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"log/slog"
	"net/url"
	"strings"
	"sync/atomic"

	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/trace"

	"github.com/egressfleet/egressfleet/providers"
)

// creates lets do see every request before the fake does.
func (w *twisted) creates(do func(context.Context, providers.CreateRequest)) {
	w.create = func(ctx context.Context, req providers.CreateRequest) (string, error) {
		do(ctx, req)
		return w.Faults.Create(ctx, req)
	}
}

func secretMutants() map[string]mutant {
	logs := func(attr func([]byte) slog.Attr) func(*twisted) {
		return func(w *twisted) {
			w.creates(func(ctx context.Context, req providers.CreateRequest) {
				providers.Logger(ctx).LogAttrs(ctx, providers.LevelWire-4, "request", attr(req.CloudInit))
			})
		}
	}
	tiered := choosing(func(p *providers.Profile) { p.Logging = providers.LoggingTiered })
	// fails puts the cloud-init of the last create into errors for which it is there.
	fails := func(when func(*providers.Error) bool) func(*twisted) {
		return func(w *twisted) {
			var last atomic.Pointer[[]byte]
			w.says(func(e *providers.Error) error {
				if data := last.Load(); data != nil && when(e) {
					e.Err = fmt.Errorf("%w: POST /?%s", e.Err, url.QueryEscape(string(*data)))
				}
				return e
			})
			create := w.create
			w.create = func(ctx context.Context, req providers.CreateRequest) (string, error) {
				last.Store(&req.CloudInit)
				return create(ctx, req)
			}
		}
	}
	return map[string]mutant{
		"cloud-init is logged": {
			row: "SecretsStayInside", says: "is shown, as it is", opts: tiered,
			also:  []string{"SecretsSurviveAnOutage", "SecretsSurviveAStall"},
			twist: logs(func(data []byte) slog.Attr { return slog.String("body", string(data)) }),
		},
		"cloud-init is logged as bytes": {
			row: "SecretsStayInside", says: "s3ntinel", opts: tiered,
			also:  []string{"SecretsSurviveAnOutage", "SecretsSurviveAStall"},
			twist: logs(func(data []byte) slog.Attr { return slog.Any("body", data) }),
		},
		"cloud-init is logged as hex": {
			row: "SecretsStayInside", says: "as hex", opts: tiered,
			also:  []string{"SecretsSurviveAnOutage", "SecretsSurviveAStall"},
			twist: logs(func(data []byte) slog.Attr { return slog.String("body", fmt.Sprintf("%x", data)) }),
		},
		"cloud-init is logged as Go code": {
			row: "SecretsStayInside", says: "as Go code", opts: tiered,
			also:  []string{"SecretsSurviveAnOutage", "SecretsSurviveAStall"},
			twist: logs(func(data []byte) slog.Attr { return slog.String("body", fmt.Sprintf("%#v", data)) }),
		},
		"cloud-init is logged as numbers": {
			row: "SecretsStayInside", says: "as numbers", opts: tiered,
			also:  []string{"SecretsSurviveAnOutage", "SecretsSurviveAStall"},
			twist: logs(func(data []byte) slog.Attr { return slog.String("body", fmt.Sprintf("%d", data)) }),
		},
		"cloud-init is in an error, encoded": {
			row: "SecretsStayInside", says: "as base64",
			also: []string{"SecretsSurviveAnOutage", "SecretsSurviveAStall"},
			twist: func(w *twisted) {
				w.create = func(ctx context.Context, req providers.CreateRequest) (string, error) {
					id, err := w.Faults.Create(ctx, req)
					if e, ok := errors.AsType[*providers.Error](err); ok {
						e.Err = fmt.Errorf("%w: %s", e.Err, base64.StdEncoding.EncodeToString(req.CloudInit))
					}
					return id, err
				}
			},
		},
		"a credential is in an error": {
			row: "SecretsStayInside", says: "hunter2",
			also: []string{"SecretsSurviveAnOutage", "SecretsSurviveAStall"},
			twist: func(w *twisted) {
				w.says(func(e *providers.Error) error {
					e.Err = fmt.Errorf("%w: https://me:hunter2@backend", e.Err)
					return e
				})
			},
		},
		"a check shows a credential": {
			row: "SecretsStayInside", says: "hunter2",
			twist: func(w *twisted) {
				w.check = func(ctx context.Context) []providers.TargetStatus {
					all := w.Faults.Check(ctx)
					all[0].Details = map[string]string{"url": "https://me:hunter2@backend"}
					return all
				}
			},
		},
		"cloud-init is in a span": {
			row: "SecretsStayOutOfSpans", says: "is shown, as it is",
			twist: func(w *twisted) {
				w.creates(func(ctx context.Context, req providers.CreateRequest) {
					span := childSpan(ctx, "lab.Insert")
					span.SetAttributes(attribute.String("body", string(req.CloudInit)))
					span.End()
				})
			},
		},
		"a credential is in an event of the caller's span": {
			row: "SecretsStayOutOfSpans", says: "hunter2",
			twist: func(w *twisted) {
				w.creates(func(ctx context.Context, _ providers.CreateRequest) {
					trace.SpanFromContext(ctx).AddEvent("dial", trace.WithAttributes(attribute.String("as", "me:hunter2")))
				})
			},
		},
		"a credential is in the status of a span": {
			row: "SecretsStayOutOfSpans", says: "hunter2",
			twist: func(w *twisted) {
				w.creates(func(ctx context.Context, _ providers.CreateRequest) {
					span := childSpan(ctx, "lab.Dial")
					span.SetStatus(codes.Error, "refused for me:hunter2")
					span.End()
				})
			},
		},
		"child spans are promised and there are none to look into": {
			row: "SecretsStayOutOfSpans", says: "the profile promises child spans", twist: promisesSpans,
			also: []string{"OperationSpansAreTheDecorators", "BackendCallsAreChildSpans"},
		},
		"cloud-init is in the error of an outage": {
			row: "SecretsSurviveAnOutage", says: "s3ntinel",
			twist: fails(func(e *providers.Error) bool { return strings.Contains(e.Err.Error(), "does not answer") }),
		},
		"cloud-init is in the error of a call that was called off": {
			row: "SecretsSurviveAStall", says: "s3ntinel",
			twist: fails(func(e *providers.Error) bool { return errors.Is(e, context.DeadlineExceeded) }),
		},
	}
}

// childSpan opens a span below that of the caller, where there is one.
func childSpan(ctx context.Context, name string, opts ...trace.SpanStartOption) trace.Span {
	if parent := trace.SpanFromContext(ctx); !parent.SpanContext().IsValid() {
		return parent
	}
	_, span := otel.Tracer("lab").Start(ctx, name, opts...)
	return span
}

func promisesSpans(w *twisted) {
	w.profile = func() providers.Profile {
		p := w.Faults.Profile()
		p.ChildSpans = providers.SpansDecorator
		return p
	}
}
