package kubernetes_test

import (
	"context"
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/egressfleet/egressfleet/providers"
	"github.com/egressfleet/egressfleet/providers/kubernetes"
	"github.com/egressfleet/egressfleet/testsuite/kubeapi"
)

func (l *lab) check(t *testing.T) []providers.TargetStatus {
	t.Helper()
	return l.Provider.(*kubernetes.Provider).Check(t.Context())
}

func TestACheckAsksForEveryRightInEveryNamespace(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	all := l.check(t)
	require.Len(t, all, 2)
	require.Equal(t, []string{namespace, elsewhere}, []string{all[0].Target, all[1].Target})
	for _, status := range all {
		require.True(t, status.Ready, status.Message)
		require.Equal(t, providers.ReasonReachable, status.Reason)
		require.Equal(t, map[string]string{
			"version":     "v1.36.3",
			"create pods": "allowed", "get pods": "allowed", "list pods": "allowed", "delete pods": "allowed",
			"create configmaps": "allowed", "get configmaps": "allowed",
			"create networkpolicies": "allowed", "get networkpolicies": "allowed", "update networkpolicies": "allowed",
		}, status.Details)
	}
}

func TestACheckNamesTheMissingRight(t *testing.T) {
	t.Parallel()
	for _, verb := range []string{"create", "get", "list", "delete"} {
		t.Run(verb, func(t *testing.T) {
			t.Parallel()
			l := newLab(t)
			l.server.Revoke(verb, "pods")
			for _, status := range l.check(t) {
				require.False(t, status.Ready)
				require.Equal(t, providers.ReasonForbidden, status.Reason)
				require.Contains(t, status.Message, verb+" pods")
				require.Equal(t, "denied", status.Details[verb+" pods"])
				require.Equal(t, "v1.36.3", status.Details["version"])
			}
		})
	}
}

func TestReasonsOfACheck(t *testing.T) {
	t.Parallel()
	html := map[string]string{"Content-Type": "text/html"}
	for name, c := range map[string]struct {
		fault kubeapi.Fault
		want  string
	}{
		"the token has expired":  {kubeapi.Answer(apierrors.NewUnauthorized("Unauthorized")), providers.ReasonUnauthorized},
		"no connection":          {kubeapi.CutOff, providers.ReasonUnreachable},
		"a page of a gateway":    {kubeapi.Body(http.StatusBadGateway, html, []byte("<html>")), providers.ReasonUnreachable},
		"a login page":           {kubeapi.Body(http.StatusOK, html, []byte("<html>login")), providers.ReasonUnreachable},
		"an error of the server": {kubeapi.Answer(apierrors.NewInternalError(context.Canceled)), providers.ReasonAPIError},
		"reviews are not allowed": {
			kubeapi.Only("create", "selfsubjectaccessreviews", kubeapi.Answer(kubeapi.OverQuota())), providers.ReasonForbidden,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l := newLab(t)
			l.server.Break(c.fault)
			for _, status := range l.check(t) {
				require.False(t, status.Ready)
				require.Equal(t, c.want, status.Reason, status.Message)
				require.NotEmpty(t, status.Message)
			}
		})
	}
}

func TestACheckThatIsNotAnsweredEnds(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	release := l.server.Stall()
	defer release()
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	for _, status := range l.Provider.(*kubernetes.Provider).Check(ctx) {
		require.Equal(t, providers.ReasonTimeout, status.Reason, status.Message)
	}
}

// The shipped Role is all that a provider needs, and it needs all of it. The server
// refuses what the Role does not grant, here and in the whole suite.
func TestTheShippedRoleIsUsedToTheLastVerb(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	id, err := l.Create(t.Context(), request("u"))
	require.NoError(t, err)
	_, err = l.ListByTag(t.Context())
	require.NoError(t, err)
	l.cfg.AllowedClients = []string{"10.20.0.0/16"}
	_, err = l.open(t, installation).Create(t.Context(), request("v"))
	require.NoError(t, err)
	require.NoError(t, l.Delete(t.Context(), id))
	var granted []string
	for _, r := range kubeapi.Rules(t, rolePath, installation) {
		for _, resource := range r.Resources {
			for _, verb := range r.Verbs {
				granted = append(granted, verb+" "+resource)
			}
		}
	}
	require.ElementsMatch(t, granted, l.server.Used())
}
