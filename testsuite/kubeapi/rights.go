package kubeapi

import (
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	rbacv1 "k8s.io/api/rbac/v1"
	"sigs.k8s.io/yaml"
)

// Rule is a rule of a Role.
type Rule = rbacv1.PolicyRule

// shippedFor is the installation that the shipped Role is written for.
const shippedFor = "production"

// Rules reads the rules of a Role or ClusterRole, the first document of a file, with the
// installation in the place of the one that they are shipped for.
func Rules(t testing.TB, path, installation string) []Rule {
	t.Helper()
	data, err := os.ReadFile(path) //nolint:gosec // a file of the repository
	require.NoError(t, err)
	first, _, found := strings.Cut(string(data), "\n---\n")
	require.True(t, found, "%s has a role and its binding", path)
	var role struct {
		rbacv1.Role
		AggregationRule any `json:"aggregationRule"`
	}
	require.NoError(t, yaml.UnmarshalStrict([]byte(first), &role))
	require.NotEmpty(t, role.Rules, path)
	for _, r := range role.Rules {
		for i, name := range r.ResourceNames {
			r.ResourceNames[i] = strings.ReplaceAll(name, shippedFor, installation)
		}
	}
	return role.Rules
}

// Grant adds rules.
func (s *Server) Grant(rules []Rule) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.rules = append(slices.Clone(s.rules), rules...)
}

// Used returns what was allowed by a rule, such as "get pods", each once.
func (s *Server) Used() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.used)
}

// allowed reports whether the rules grant an action. Every cluster lets everybody who
// is known ask for its version, and for their own rights.
func (s *Server) allowed(a Action) bool {
	if a.Resource == "version" || a.Resource == "readyz" || a.Resource == "selfsubjectaccessreviews" {
		return true
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	ok := granted(s.rules, a)
	if what := a.Verb + " " + a.Resource; ok && !slices.Contains(s.used, what) {
		s.used = append(s.used, what)
	}
	return ok
}

func granted(rules []Rule, a Action) bool {
	return slices.ContainsFunc(rules, func(r Rule) bool {
		return slices.Contains(r.APIGroups, a.Group) && slices.Contains(r.Resources, a.Resource) &&
			slices.Contains(r.Verbs, a.Verb) && (len(r.ResourceNames) == 0 || slices.Contains(r.ResourceNames, a.Name))
	})
}

// Revoke takes a verb on a resource away.
func (s *Server) Revoke(verb, resource string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for i, r := range s.rules {
		if slices.Contains(r.Resources, resource) {
			s.rules[i].Verbs = slices.DeleteFunc(slices.Clone(r.Verbs), func(v string) bool { return v == verb })
		}
	}
}
