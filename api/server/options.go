package server

import (
	"cmp"
	"crypto/tls"
	"log/slog"
	"net/http"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"go.opentelemetry.io/otel/trace"
	"go.opentelemetry.io/otel/trace/noop"

	"github.com/egressfleet/egressfleet/api/feedback"
	v1 "github.com/egressfleet/egressfleet/api/v1"
	"github.com/egressfleet/egressfleet/starter/fleet"
)

// Options are what a server may be given. The zero value is good.
type Options struct {
	Logger *slog.Logger // nil discards
	Clock  Clock        // nil is the system's
	Limits Limits       // a zero field takes its default
	// Providers returns the providers of this process, and whether it has any to tell
	// of; nil has none. It must not block.
	Providers func() (v1.ProviderList, bool)
	// Keys say what tokens may do; nil: none is required.
	Keys Keys
	// TLS is what Run serves with; nil: plain HTTP.
	TLS *tls.Config
	// WorkflowURL is where the workflow of a Proxy is shown, in the Temporal Web UI; nil:
	// pages link to none.
	WorkflowURL func(namespace, name string) string
	// Codec serves /codec/…, authentication included; nil: there is nothing there.
	Codec http.Handler
	// Traces makes the spans of requests; nil: there are none.
	Traces trace.TracerProvider
	// Metrics takes the figures of the fleet and of the list of discovery; nil: nobody does.
	Metrics prometheus.Registerer
	// Feedback is what reports of clients lead to; the zero one is the default.
	Feedback fleet.FeedbackPolicy
	// FeedbackMetrics may be nil; they are of this server alone.
	FeedbackMetrics *feedback.Metrics
}

// Limits bound every request, so that neither a slow client nor a silent Temporal
// holds anything forever.
type Limits struct {
	Handler    time.Duration // from the headers to the answer; 10 s
	ReadHeader time.Duration // 5 s
	Read       time.Duration // headers and body; 10 s
	// Write is from the headers to the end of the answer; 30 s, since a slow body and
	// a slow handler come before the answer.
	Write       time.Duration
	Idle        time.Duration // between requests of a connection; 2 min
	Shutdown    time.Duration // for what is running when Run ends; 15 s
	HeaderBytes int           // 16 KiB; above it, net/http answers 431 by itself
	BodyBytes   int64         // 1 MiB
}

// The defaults of Limits.
const (
	handlerLimit    = 10 * time.Second
	readHeaderLimit = 5 * time.Second
	readLimit       = 10 * time.Second
	writeLimit      = 30 * time.Second
	idleLimit       = 2 * time.Minute
	shutdownLimit   = 15 * time.Second // longer than a handler may take
	headerBytes     = 16 << 10
	bodyBytes       = 1 << 20
)

func (o Options) withDefaults() Options {
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	if o.Clock == nil {
		o.Clock = systemClock{}
	}
	if o.Providers == nil {
		o.Providers = func() (v1.ProviderList, bool) { return v1.ProviderList{}, false }
	}
	if o.Traces == nil {
		o.Traces = noop.NewTracerProvider()
	}
	o.Limits = o.Limits.withDefaults()
	return o
}

func (l Limits) withDefaults() Limits {
	return Limits{
		Handler:     cmp.Or(l.Handler, handlerLimit),
		ReadHeader:  cmp.Or(l.ReadHeader, readHeaderLimit),
		Read:        cmp.Or(l.Read, readLimit),
		Write:       cmp.Or(l.Write, writeLimit),
		Idle:        cmp.Or(l.Idle, idleLimit),
		Shutdown:    cmp.Or(l.Shutdown, shutdownLimit),
		HeaderBytes: cmp.Or(l.HeaderBytes, headerBytes),
		BodyBytes:   cmp.Or(l.BodyBytes, bodyBytes),
	}
}
