//go:build integration && linux

package kubernetes

import (
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	rbacv1 "k8s.io/api/rbac/v1"
	"sigs.k8s.io/yaml"

	"github.com/egressfleet/egressfleet/testsuite/devserver"
	"github.com/egressfleet/egressfleet/testsuite/kubeapi"
)

// documentedRules are the rules of the one Role that is shipped, for the names of this
// suite.
func documentedRules(t *testing.T) (rules []rbacv1.PolicyRule) {
	t.Helper()
	rules = shippedRules(t, installation)
	root, err := devserver.Root()
	require.NoError(t, err)
	guide, err := os.ReadFile(filepath.Join(root, "docs", "providers", "kubernetes.md"))
	require.NoError(t, err)
	require.Equal(t, rules, rulesOf(t, string(guide)), "the guide prints another Role")
	return rules
}

func shippedRules(t *testing.T, installation string) []rbacv1.PolicyRule {
	t.Helper()
	root, err := devserver.Root()
	require.NoError(t, err)
	return kubeapi.Rules(t, filepath.Join(root, "deploy", "kubernetes", "rbac.yaml"), installation)
}

// rulesOf are those of the one Role in the blocks of a page.
func rulesOf(t *testing.T, page string) (rules []rbacv1.PolicyRule) {
	t.Helper()
	for _, block := range regexp.MustCompile("(?s)```yaml[^\n]*\n(.*?)```").FindAllStringSubmatch(page, -1) {
		for part := range strings.SplitSeq(block[1], "---\n") {
			var role rbacv1.Role
			if yaml.Unmarshal([]byte(part), &role) == nil && role.Kind == "Role" {
				require.Empty(t, rules, "the guide has one Role")
				rules = role.Rules
			}
		}
	}
	return rules
}

// right is a verb on a resource, and what of it is allowed by name.
type right struct{ group, resource, verb, name string }

// rights are all that some rules give, one by one.
func rights(rules []rbacv1.PolicyRule) (all []right) {
	for _, rule := range rules {
		names := rule.ResourceNames
		if len(names) == 0 {
			names = []string{""}
		}
		for _, group := range rule.APIGroups {
			for _, resource := range rule.Resources {
				for _, verb := range rule.Verbs {
					for _, name := range names {
						all = append(all, right{group, resource, verb, name})
					}
				}
			}
		}
	}
	return all
}

// asked is what the audit log of the API server keeps of a request.
type asked struct {
	Verb           string
	User           struct{ Username string }
	ObjectRef      struct{ APIGroup, Namespace, Resource, Name string }
	ResponseStatus struct{ Code int }
	RequestURI     string
}

// requests are those of the user in the namespace, as the API server has answered them.
func (n *tenant) requests() (all []asked) {
	n.t.Helper()
	text, err := os.ReadFile(n.Log("audit"))
	require.NoError(n.t, err)
	for line := range strings.Lines(string(text)) {
		var a asked
		if json.Unmarshal([]byte(line), &a) == nil && a.User.Username == user && a.ObjectRef.Namespace == n.namespace {
			all = append(all, a)
		}
	}
	require.NotEmpty(n.t, all)
	return all
}
