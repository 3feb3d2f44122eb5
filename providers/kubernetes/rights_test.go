package kubernetes_test

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	rbacv1 "k8s.io/api/rbac/v1"
	"sigs.k8s.io/yaml"
)

// rule is a rule of the shipped Role.
type rule = rbacv1.PolicyRule

// The words of the shipped Role, which an administrator replaces. The lab uses them as
// they are.
const (
	installation = "production"
	providerName = "kubernetes"
	namespace    = "egress"
)

func shipped(t *testing.T, file string) string {
	t.Helper()
	data, err := os.ReadFile(filepath.Join("..", "..", "deploy", "kubernetes", file))
	require.NoError(t, err)
	return string(data)
}

// providerRules reads the rules of the Role as they are shipped.
func providerRules(t *testing.T) []rule {
	t.Helper()
	first, _, found := strings.Cut(shipped(t, "rbac.yaml"), "\n---\n")
	require.True(t, found)
	var role rbacv1.Role
	require.NoError(t, yaml.UnmarshalStrict([]byte(first), &role))
	require.Equal(t, namespace, role.Namespace)
	return role.Rules
}

// nodeRules reads the optional ones.
func nodeRules(t *testing.T) []rule {
	t.Helper()
	first, _, found := strings.Cut(shipped(t, "rbac-nodes.yaml"), "\n---\n")
	require.True(t, found)
	var role rbacv1.ClusterRole
	require.NoError(t, yaml.UnmarshalStrict([]byte(first), &role))
	return role.Rules
}

// allowed reports whether the rules grant an action, and remembers which did.
func (s *apiServer) allowed(a action) bool {
	if a.resource == "version" || a.resource == "selfsubjectaccessreviews" {
		return true // every cluster lets everybody who is known ask these
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	ok := granted(s.rules, a)
	if ok {
		s.used[a.verb+" "+a.resource] = true
	}
	return ok
}

func granted(rules []rule, a action) bool {
	return slices.ContainsFunc(rules, func(r rule) bool {
		named := len(r.ResourceNames) == 0 || slices.Contains(r.ResourceNames, a.name) ||
			// Another installation or provider has a Role of its own, with its own names.
			strings.HasPrefix(a.name, "egressfleet.") && a.verb != "create"
		return slices.Contains(r.APIGroups, a.group) && slices.Contains(r.Resources, a.resource) &&
			slices.Contains(r.Verbs, a.verb) && named
	})
}
