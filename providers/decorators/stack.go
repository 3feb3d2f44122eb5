// Package decorators wraps a provider with what every provider needs and none
// writes itself: a span and a metric for each call, labelled by class, never by
// text. It imports the contract, OpenTelemetry's trace API and the Prometheus
// client. Start reading at Stack, the one place that knows the order.
package decorators

import (
	"go.opentelemetry.io/otel/trace"

	"github.com/egressfleet/egressfleet/providers"
)

// Stack returns p with every decorator, the outermost first: tracing, metrics. Name
// is the configured name of the provider.
func Stack(p providers.Provider, name string, tracer trace.Tracer, metrics *Metrics) providers.Provider {
	return WithTracing(WithMetrics(p, name, metrics), name, tracer)
}

// resultOK is the class of a call that did not fail, as label and as attribute.
const resultOK = "ok"

// result returns the class of an error as a label: "ok" for none.
func result(err error) string {
	if err == nil {
		return resultOK
	}
	return string(providers.ClassOf(err))
}

// call is one call of a provider: the operation, and the ID where it is known.
type call struct{ op, id string }
