package temporalserver

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
)

// FailedTasks reads the /metrics of a worker: how many workflow tasks it has failed, and a
// line for each workflow type and reason, sorted. Metrics that are none of a
// worker are an error.
func FailedTasks(metrics string) (all int, lines []string, err error) {
	parser := expfmt.NewTextParser(model.UTF8Validation)
	families, err := parser.TextToMetricFamilies(strings.NewReader(metrics))
	if err != nil {
		return 0, nil, err
	}
	if families["temporal_num_pollers"] == nil {
		return 0, nil, errors.New("these metrics are not those of a worker: they have no temporal_num_pollers")
	}
	for _, m := range families["temporal_workflow_task_execution_failed_total"].GetMetric() {
		labels := map[string]string{}
		for _, l := range m.GetLabel() {
			labels[l.GetName()] = l.GetValue()
		}
		n := int(m.GetCounter().GetValue())
		all += n
		if n > 0 {
			lines = append(lines, fmt.Sprintf("%d of %s (%s)", n, labels["workflow_type"], labels["failure_reason"]))
		}
	}
	slices.Sort(lines)
	return all, lines, nil
}
