package alerts_test

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"sigs.k8s.io/yaml"
)

const (
	root       = "../.."
	rulesFile  = root + "/deploy/helm/egressfleet/rules.yaml"
	boardFile  = root + "/deploy/helm/egressfleet/dashboard.json"
	casesFile  = "testdata/rules_test.yaml"
	pagesOnWeb = "https://github.com/egressfleet/egressfleet/blob/main/docs/runbooks/"
)

// rules are the file of rules.
type rules struct {
	Groups []struct {
		Name     string `json:"name"`
		Interval string `json:"interval,omitempty"`
		Rules    []rule `json:"rules"`
	} `json:"groups"`
}

type rule struct {
	Alert       string            `json:"alert"`
	Expr        string            `json:"expr"`
	For         string            `json:"for,omitempty"`
	Labels      map[string]string `json:"labels"`
	Annotations map[string]string `json:"annotations"`
}

func read(t *testing.T, file string, to any) {
	t.Helper()
	raw, err := os.ReadFile(file)
	require.NoError(t, err)
	require.NoError(t, yaml.UnmarshalStrict(raw, to))
}

func alerts(t *testing.T) []rule {
	t.Helper()
	var all rules
	read(t, rulesFile, &all)
	require.Len(t, all.Groups, 1)
	require.NotEmpty(t, all.Groups[0].Rules)
	return all.Groups[0].Rules
}

// page is the file of the runbook of an alert.
func (r rule) page(t *testing.T) string {
	t.Helper()
	name, ok := strings.CutPrefix(r.Annotations["runbook_url"], pagesOnWeb)
	require.True(t, ok, "%s: its runbook_url begins with %s", r.Alert, pagesOnWeb)
	return filepath.Join(root, "docs", "runbooks", name)
}

func TestEveryAlertHasAPageThatSaysWhatToDo(t *testing.T) {
	t.Parallel()
	list, err := os.ReadFile(root + "/docs/alerts.md")
	require.NoError(t, err)
	for _, r := range alerts(t) {
		raw, err := os.ReadFile(r.page(t))
		require.NoError(t, err, r.Alert)
		page, rest := string(raw), string(raw)
		for _, heading := range []string{
			"\n## What it means\n", "\n## What happens by itself\n", "\n## What to do\n", "\n## How to see that it is over\n",
		} {
			_, after, found := strings.Cut(rest, heading)
			require.True(t, found, "%s lacks, or has out of order: %s", r.page(t), heading)
			rest = after
		}
		require.Contains(t, page, "`"+r.Alert+"`", "the page names its alert")
		require.NotEmpty(t, commands(page), "%s has commands", r.page(t))
		_, ours, _ := strings.Cut(page, "\n## What it means\n")
		require.Len(t, commands(page), strings.Count(ours, "```")/2, "%s: every block is run", r.page(t))
		require.Regexp(t, `(?m)^\| \[`+r.Alert+`\]\(runbooks/`+filepath.Base(r.page(t))+`\)`, string(list))
		require.Contains(t, []string{"critical", "warning"}, r.Labels["severity"], r.Alert)
		require.NotEmpty(t, r.Annotations["summary"], r.Alert)
		require.NotEmpty(t, r.For, r.Alert)
	}
}

// promtoolCase is one test of promtool's, as far as it is read here.
type promtoolCase struct {
	Name   string           `json:"name"`
	Every  string           `json:"interval"`
	Series []map[string]any `json:"input_series"`
	Tests  []struct {
		Expr    string           `json:"expr"`
		At      string           `json:"eval_time"`
		Samples []map[string]any `json:"exp_samples"`
	} `json:"promql_expr_test"`
}

func TestEveryAlertIsShownToFireAndToKeepQuiet(t *testing.T) {
	t.Parallel()
	var cases struct {
		Files []string       `json:"rule_files"`
		Every string         `json:"evaluation_interval"`
		Tests []promtoolCase `json:"tests"`
	}
	read(t, casesFile, &cases)
	require.Len(t, cases.Files, 1)
	require.Equal(t, filepath.Clean(rulesFile), filepath.Join("testdata", cases.Files[0]))
	fires, quiet := map[string]bool{}, map[string]bool{}
	named := regexp.MustCompile(`^ALERTS\{alertname="(\w+)"`)
	for _, c := range cases.Tests {
		for _, look := range c.Tests {
			alert := named.FindStringSubmatch(look.Expr)
			require.NotNil(t, alert, "%s: %s", c.Name, look.Expr)
			if len(look.Samples) > 0 {
				fires[alert[1]] = true
			} else if !strings.Contains(look.Expr, "alertstate") { // not even waiting to fire
				quiet[alert[1]] = true
			}
		}
	}
	for _, r := range alerts(t) {
		require.True(t, fires[r.Alert], "%s has a case in which it fires", r.Alert)
		require.True(t, quiet[r.Alert], "%s has a case in which it keeps quiet", r.Alert)
	}
}

// ofOthers are the figures of libraries that are asked for, and Prometheus's own; the
// scene shows that they are there.
var ofOthers = map[string]bool{
	"temporal_num_pollers":                                            true,
	"temporal_workflow_task_execution_failed_total":                   true,
	"temporal_request_failure_total":                                  true,
	"temporal_workflow_task_schedule_to_start_latency_seconds_bucket": true,
	"temporal_activity_schedule_to_start_latency_seconds_bucket":      true,
	"process_resident_memory_bytes":                                   true,
	"ALERTS":                                                          true,
}

var (
	figure   = regexp.MustCompile(`\b((egressfleet|temporal|process|go)_\w+|ALERTS)`)
	quoted   = regexp.MustCompile(`"[^"]*"`)
	inATable = regexp.MustCompile("(?m)^\\| `(egressfleet_\\w+)` \\| (\\w+) \\|")
)

// shown are the figures that the page of metrics has.
func shown(t *testing.T) map[string]bool {
	t.Helper()
	raw, err := os.ReadFile(root + "/docs/metrics.md")
	require.NoError(t, err)
	names := map[string]bool{}
	for _, row := range inATable.FindAllStringSubmatch(string(raw), -1) {
		names[row[1]] = true
		if row[2] == "histogram" {
			delete(names, row[1])
			names[row[1]+"_bucket"], names[row[1]+"_count"], names[row[1]+"_sum"] = true, true, true
		}
	}
	require.NotEmpty(t, names)
	return names
}

func TestRulesAndDashboardAskForWhatIsShown(t *testing.T) {
	t.Parallel()
	known := shown(t)
	var asked []string
	for _, r := range alerts(t) {
		asked = append(asked, r.Expr)
	}
	for _, q := range board(t).queries() {
		asked = append(asked, q.Expr)
	}
	for _, expr := range asked {
		names := figure.FindAllString(quoted.ReplaceAllString(expr, `""`), -1)
		require.NotEmpty(t, names, expr)
		for _, name := range names {
			require.True(t, known[name] || ofOthers[name], "%s is not in docs/metrics.md: %s", name, expr)
		}
	}
}
