package tracing

import (
	"context"

	"go.opentelemetry.io/otel/propagation"
	commonpb "go.temporal.io/api/common/v1"
	"go.temporal.io/sdk/converter"
)

// Header is what a client in a trace sends along.
func Header(ctx context.Context) (*commonpb.Header, error) {
	sent := propagation.MapCarrier{}
	propagation.TraceContext{}.Inject(ctx, sent)
	payload, err := converter.GetDefaultDataConverter().ToPayload(map[string]string(sent))
	return &commonpb.Header{Fields: map[string]*commonpb.Payload{"_tracer-data": payload}}, err
}
