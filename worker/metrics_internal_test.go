package main

import (
	"flag"
	"fmt"
	"maps"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/client"

	"github.com/egressfleet/egressfleet/activities"
	"github.com/egressfleet/egressfleet/api/feedback"
	"github.com/egressfleet/egressfleet/api/server"
	"github.com/egressfleet/egressfleet/internal/telemetry"
	"github.com/egressfleet/egressfleet/providers/decorators"
)

//go:generate go test -count=1 -run ^TestThePageOfMetricsIsCurrent$ . -args -update

var update = flag.Bool("update", false, "write docs/metrics.md")

const (
	metricsPage = "../docs/metrics.md"
	tableBegins = "<!-- generated: make generate -->\n"
)

// bounds say what each label can be. One that is not here fails the test: a label
// without a bound is one time series for whatever somebody sends.
func bounds() map[string]string {
	return map[string]string{
		"provider": "configured providers; of `egressfleet_proxies` those that specs name, 50 at most, and `(other)`",
		"op":       "`create`, `get`, `delete`, `list`, `prepare`",
		"class":    "`ok` and the four classes of errors",
		"phase":    "the phases of a Proxy",
		"reason":   "the reasons of the conditions Provisioned and Deleting, which are words of ours",
		"sweep":    "`orphan-gc`, `drift-sweep`",
		"kind": "of orphans `listed`, `living`, `young`, `doubts`, `orphans`; of reports `banned`, `captcha`, `timeout`, " +
			"`slow`",
		"schedule":  "the schedules that there are",
		"verdict":   "`hold`, `replace`",
		"why":       "`budget`, `floor`, `gone`",
		"outcome":   "`passed`, `failed`, `undecided`",
		"target":    "what a provider's check looks at, such as its hosts or zones",
		"resource":  "quotas that a target has",
		"result":    "`ok`, `failed`",
		"version":   "one",
		"goversion": "one",
	}
}

// catalogue keeps what is registered.
type catalogue struct {
	prometheus.Registerer
	all []prometheus.Collector
}

func (c *catalogue) MustRegister(all ...prometheus.Collector) { c.all = append(c.all, all...) }

var description = regexp.MustCompile(
	`^Desc\{fqName: "([^"]*)", help: "([^"]*)", (?:unit: "[^"]*", )?constLabels: \{\}, variableLabels: \{([^}]*)\}\}$`)

// rows are the lines of the table, and the labels that they name.
func (c *catalogue) rows(t *testing.T) (rows []string, labels map[string]bool) {
	t.Helper()
	labels = map[string]bool{}
	for _, collector := range c.all {
		descs := make(chan *prometheus.Desc, 100)
		collector.Describe(descs)
		close(descs)
		for desc := range descs {
			found := description.FindStringSubmatch(desc.String())
			require.NotNil(t, found, desc.String())
			names := strings.FieldsFunc(found[3], func(r rune) bool { return r == ',' })
			for _, name := range names {
				labels[name] = true
			}
			rows = append(rows, fmt.Sprintf("| `%s` | %s | %s | %s |\n",
				found[1], kindOf(collector, found[1]), strings.Join(names, ", "), found[2]))
		}
	}
	slices.Sort(rows)
	return rows, labels
}

func kindOf(c prometheus.Collector, name string) string {
	if _, ok := c.(*prometheus.HistogramVec); ok {
		return "histogram"
	}
	if strings.HasSuffix(name, "_total") {
		return "counter"
	}
	return "gauge"
}

// registered is everything that a worker shows of ours.
func registered() *catalogue {
	c := &catalogue{}
	newReloadMetrics(c)
	decorators.NewMetrics(c)
	activities.NewSweepMetrics(c)
	activities.NewHealthMetrics(c)
	activities.NewCheckMetrics(c)
	activities.NewOpenProxyMetrics(c)
	activities.NewFeedbackMetrics(c)
	newLifetimes(c, client.MetricsNopHandler)
	server.New(newAwaitedFleet(), server.Options{Metrics: c, FeedbackMetrics: feedback.NewMetrics(c)})
	c.MustRegister(newPlanned(nil, nil))
	c.MustRegister(telemetry.NewBuildInfo())
	return c
}

func TestThePageOfMetricsIsCurrent(t *testing.T) {
	t.Parallel()
	rows, labels := registered().rows(t)
	table := "| metric | type | labels | is |\n|---|---|---|---|\n" + strings.Join(rows, "") +
		"\n| label | is one of |\n|---|---|\n"
	for _, label := range slices.Sorted(maps.Keys(labels)) {
		bound := bounds()[label]
		require.NotEmpty(t, bound, "label %s has no bound", label)
		table += "| `" + label + "` | " + bound + " |\n"
	}
	raw, err := os.ReadFile(metricsPage)
	require.NoError(t, err)
	prose, shown, found := strings.Cut(string(raw), tableBegins)
	require.True(t, found, "the page says where the table begins")
	if *update {
		require.NoError(t, os.WriteFile(metricsPage, []byte(prose+tableBegins+table), 0o600))
		return
	}
	require.Equal(t, table, shown, "`make generate` writes docs/metrics.md")
}
