package main

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"go.temporal.io/sdk/client"

	"github.com/egressfleet/egressfleet/workflows/proxy"
)

// waitBuckets are seconds: from a process on this machine to a removal that is stuck
// for a day.
func waitBuckets() []float64 {
	return []float64{1, 2.5, 5, 10, 20, 30, 60, 120, 300, 600, 1800, 3600, 4 * 3600, 24 * 3600}
}

// lifetimes is a handler of metrics for Temporal's client. What workflows tell of
// proxies becomes histograms of ours: of all tags they have the provider alone. The
// rest is the handler's below. What is told in a replay does not get here.
type lifetimes struct {
	client.MetricsHandler
	own      map[string]*prometheus.HistogramVec // by name
	provider string
}

// newLifetimes registers the histograms; a process has one set. Those of the named
// providers are there before their first observation: a rate needs the 0 before the 1.
func newLifetimes(reg prometheus.Registerer, below client.MetricsHandler, providers ...string) lifetimes {
	l := lifetimes{MetricsHandler: below, own: map[string]*prometheus.HistogramVec{}}
	for name, help := range map[string]string{
		proxy.TimeToRunning: "How long an instance was waited for until it ran with an address: from the wish, or from the " +
			"loss or replacement of the one before.",
		proxy.TimeToGone: "How long a removal for good took, from the wish until nothing was left.",
	} {
		l.own[name] = prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: name, Help: help, Buckets: waitBuckets(),
		}, []string{proxy.LabelProvider})
		for _, provider := range providers {
			l.own[name].WithLabelValues(provider)
		}
		reg.MustRegister(l.own[name])
	}
	return l
}

// WithTags keeps the provider for our own.
func (l lifetimes) WithTags(tags map[string]string) client.MetricsHandler {
	l.MetricsHandler = l.MetricsHandler.WithTags(tags)
	if provider, ok := tags[proxy.LabelProvider]; ok {
		l.provider = provider
	}
	return l
}

// Timer is ours, or the handler's below.
func (l lifetimes) Timer(name string) client.MetricsTimer {
	if h, ok := l.own[name]; ok {
		return observed{h.WithLabelValues(l.provider)}
	}
	return l.MetricsHandler.Timer(name)
}

// observed is a timer that fills a histogram of seconds.
type observed struct{ prometheus.Observer }

// Record adds one duration.
func (o observed) Record(d time.Duration) { o.Observe(d.Seconds()) }
