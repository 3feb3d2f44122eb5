//go:build tools

package alerts_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"sigs.k8s.io/yaml"
)

func promtool(t *testing.T, args ...string) (string, error) {
	t.Helper()
	out, err := exec.CommandContext(t.Context(), "promtool", args...).CombinedOutput()
	return string(out), err
}

func TestTheRulesFireWhenTheyShould(t *testing.T) {
	t.Parallel()
	out, err := promtool(t, "check", "rules", "--lint-fatal", rulesFile)
	require.NoError(t, err, out)
	out, err = promtool(t, "test", "rules", casesFile)
	require.NoError(t, err, out)
}

const whole = "it is whole"

// Cases that pass whatever a rule says would prove nothing.
func TestABrokenRuleFailsItsCases(t *testing.T) {
	t.Parallel()
	cases, err := os.ReadFile(casesFile)
	require.NoError(t, err)
	inCases := "../" + rulesFile // as a file in testdata sees it
	require.Contains(t, string(cases), inCases)
	for n, r := range alerts(t) {
		for what, broken := range map[string]func(*rule){
			whole:             func(*rule) {}, // or they would fail whatever is done to them
			"it never fires":  func(r *rule) { r.Expr = "vector(1) > 1" },
			"it always fires": func(r *rule) { r.Expr = "(" + r.Expr + ") or on () vector(1)" },
			"it is hasty":     func(r *rule) { r.For = "0s" },
		} {
			t.Run(r.Alert+"/"+what, func(t *testing.T) {
				t.Parallel()
				var all rules
				read(t, rulesFile, &all)
				broken(&all.Groups[0].Rules[n])
				text, err := yaml.Marshal(all)
				require.NoError(t, err)
				dir := t.TempDir()
				require.NoError(t, os.WriteFile(filepath.Join(dir, "rules.yaml"), text, 0o600))
				require.NoError(t, os.WriteFile(filepath.Join(dir, "cases.yaml"),
					[]byte(strings.Replace(string(cases), inCases, "rules.yaml", 1)), 0o600))
				out, err := promtool(t, "test", "rules", filepath.Join(dir, "cases.yaml"))
				if what == whole {
					require.NoError(t, err, out)
					return
				}
				require.Error(t, err)
				require.Contains(t, out, r.Alert)
			})
		}
	}
}
