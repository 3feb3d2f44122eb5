package telemetry

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"net/http"
	"runtime"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	otelprometheus "go.opentelemetry.io/otel/exporters/prometheus"
	"go.opentelemetry.io/otel/metric"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
)

const (
	// readHeaderTimeout bounds a client that connects and says nothing.
	readHeaderTimeout = 5 * time.Second
	// stopTimeout lets a scrape that is under way end.
	stopTimeout = 2 * time.Second
)

// NewRegistry returns a registry of this process's own metrics: the Go runtime, the
// process and egressfleet_build_info. Others register theirs in it.
func NewRegistry() *prometheus.Registry {
	r := prometheus.NewRegistry()
	r.MustRegister(NewBuildInfo(), collectors.NewGoCollector(),
		collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	return r
}

// NewBuildInfo returns egressfleet_build_info, which is 1.
func NewBuildInfo() *prometheus.GaugeVec {
	info := prometheus.NewGaugeVec(prometheus.GaugeOpts{
		Name: "egressfleet_build_info", Help: "1, with the version of the binary and of Go as labels.",
	}, []string{"version", "goversion"})
	info.WithLabelValues(Version(), runtime.Version()).Set(1)
	return info
}

// latencyBuckets are seconds: from a call on this machine to the minutes of an activity.
// Those that an SDK has by itself are for milliseconds.
func latencyBuckets() []float64 {
	return []float64{.005, .025, .1, .25, .5, 1, 2.5, 5, 10, 30, 60, 300}
}

// NewMeter returns a meter whose instruments are shown by a registry, which has one
// meter at most. Its histograms are of seconds.
func NewMeter(r prometheus.Registerer) (metric.Meter, error) {
	exporter, err := otelprometheus.New(otelprometheus.WithRegisterer(r),
		otelprometheus.WithoutScopeInfo(), otelprometheus.WithoutTargetInfo())
	if err != nil {
		return nil, err
	}
	seconds := sdkmetric.NewView(sdkmetric.Instrument{Kind: sdkmetric.InstrumentKindHistogram}, sdkmetric.Stream{
		Aggregation: sdkmetric.AggregationExplicitBucketHistogram{Boundaries: latencyBuckets()},
	})
	return sdkmetric.NewMeterProvider(sdkmetric.WithReader(exporter), sdkmetric.WithView(seconds)).
		Meter("temporal-sdk-go"), nil
}

// ServeMetrics serves GET /metrics, /healthz and /readyz on a listener until ctx ends, and
// closes the listener. A process without the API is asked here whether it lives, and whether
// it is ready. It returns nil then, and an error when serving ended otherwise.
func ServeMetrics(
	ctx context.Context, l net.Listener, r *prometheus.Registry, ready func() bool, log *slog.Logger,
) error {
	mux := http.NewServeMux()
	mux.Handle("GET /metrics", promhttp.InstrumentMetricHandler(r, promhttp.HandlerFor(r, promhttp.HandlerOpts{
		ErrorLog: slog.NewLogLogger(log.Handler(), slog.LevelError),
	})))
	mux.HandleFunc("GET /healthz", func(http.ResponseWriter, *http.Request) {})
	mux.HandleFunc("GET /readyz", func(w http.ResponseWriter, _ *http.Request) {
		if !ready() {
			http.Error(w, "starting", http.StatusServiceUnavailable)
		}
	})
	s := &http.Server{
		Handler: mux, ReadHeaderTimeout: readHeaderTimeout,
		ErrorLog: slog.NewLogLogger(log.Handler(), slog.LevelWarn),
	}
	stopped := make(chan struct{})
	stop := context.AfterFunc(ctx, func() {
		defer close(stopped)
		grace, cancel := context.WithTimeout(context.WithoutCancel(ctx), stopTimeout)
		defer cancel()
		_ = s.Shutdown(grace)
	})
	err := s.Serve(l)
	if !stop() { // ctx ended: Serve returns before the last scrape does
		<-stopped
	}
	if errors.Is(err, http.ErrServerClosed) {
		return nil
	}
	return err
}
