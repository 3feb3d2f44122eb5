package providertest

import (
	"strings"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/require"
)

// counted is what the process shows to whoever scrapes it, but for the runtime's own.
func (s *scene) counted() string {
	s.Helper()
	families, err := prometheus.DefaultGatherer.Gather()
	require.NoError(s, err)
	var out strings.Builder
	for _, family := range families {
		if !runtimeMetrics(family.GetName()) {
			out.WriteString(family.String() + "\n")
		}
	}
	return out.String()
}

// runtimeMetrics are about the process and change by themselves.
func runtimeMetrics(name string) bool {
	return strings.HasPrefix(name, "go_") || strings.HasPrefix(name, "process_") || strings.HasPrefix(name, "promhttp_")
}
