package gcp_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/egressfleet/egressfleet/providers"
	"github.com/egressfleet/egressfleet/providers/gcp"
)

func managed(cfg *gcp.Config) {
	cfg.Firewall, cfg.SourceRanges = "managed", []string{"203.0.113.0/24", "198.51.100.7/32"}
}

func (l *lab) ports() (ports []string) {
	for _, rule := range l.cloud.Firewalls() {
		for _, allowed := range rule.GetAllowed() {
			ports = append(ports, allowed.GetPorts()...)
		}
	}
	return ports
}

func TestTheRuleComesWithTheFirstInstanceAndGoesWithTheLast(t *testing.T) {
	t.Parallel()
	l := newLab(t, managed)
	other := func(r *providers.CreateRequest) { r.Port = 8080 }
	first, second := l.create(request()), l.create(request(other))
	require.Len(t, l.cloud.Firewalls(), 1, "one for the provider")
	rule := l.cloud.Firewalls()[0]
	require.Equal(t, []string{"3128", "8080"}, l.ports())
	require.Equal(t, l.cfg.SourceRanges, rule.GetSourceRanges())
	require.Equal(t, []string{"egress-proxy"}, rule.GetTargetTags())
	require.Equal(t, "egressfleet-test-gcp-test", rule.GetName())
	require.NoError(t, l.Delete(t.Context(), first))
	l.gone(first)
	require.Len(t, l.cloud.Firewalls(), 1, "the other one needs it")
	require.NoError(t, l.Delete(t.Context(), second))
	l.gone(second)
	require.Eventually(t, func() bool { return len(l.cloud.Firewalls()) == 0 }, soon, tick)
}

func TestManyCreatesOpenAllTheirPorts(t *testing.T) {
	t.Parallel()
	l := newLab(t, managed)
	failed := make(chan error, 6)
	var want []string
	for n := range cap(failed) {
		want = append(want, fmt.Sprint(3000+n))
		go func() {
			_, err := l.Create(l.Context(), request(func(r *providers.CreateRequest) { r.Port = 3000 + n }))
			failed <- err
		}()
	}
	for range cap(failed) {
		require.NoError(t, <-failed)
	}
	_, err := l.ListByTag(t.Context()) // whoever wrote last may have lost the port of another
	require.NoError(t, err)
	require.Subset(t, l.ports(), want)
}

func TestAPortThatNobodyUsesIsClosedAfterAWhile(t *testing.T) {
	t.Parallel()
	l := newLab(t, managed)
	kept, gone := l.create(request()), l.create(request(func(r *providers.CreateRequest) { r.Port = 8080 }))
	require.NoError(t, l.Delete(t.Context(), gone))
	l.gone(gone)
	_, err := l.ListByTag(t.Context())
	require.NoError(t, err)
	require.Equal(t, []string{"3128", "8080"}, l.ports(), "a create may have opened it just now")
	gcp.Clock(l.Provider, func() time.Time { return time.Now().Add(11 * time.Minute) })
	_, err = l.ListByTag(t.Context())
	require.NoError(t, err)
	require.Equal(t, []string{"3128"}, l.ports())
	l.running(kept)
}

func TestChangedRangesReachTheRule(t *testing.T) {
	t.Parallel()
	l := newLab(t, managed)
	l.create(request())
	l.cfg.SourceRanges = []string{"192.0.2.0/24"}
	_, err := l.reopen(installation).ListByTag(t.Context())
	require.NoError(t, err)
	require.Equal(t, []string{"192.0.2.0/24"}, l.cloud.Firewalls()[0].GetSourceRanges())
}

func TestARuleOfSomebodyElseIsNotTouched(t *testing.T) {
	t.Parallel()
	l := newLab(t, managed)
	id := l.create(request())
	require.NoError(t, l.Delete(t.Context(), id))
	l.gone(id)
	require.Eventually(t, func() bool { return len(l.cloud.Firewalls()) == 0 }, soon, tick)
	require.Equal(t, http.StatusOK, l.post("/compute/v1/projects/"+project+"/global/firewalls",
		`{"name": "egressfleet-test-gcp-test", "allowed": [{"IPProtocol": "tcp", "ports": ["22"]}]}`))
	req := request()
	_, err := l.Create(t.Context(), req)
	require.Equal(t, providers.ErrPermanent, providers.ClassOf(err))
	require.ErrorContains(t, err, "egressfleet-test-gcp-test")
	require.Equal(t, []string{"22"}, l.ports())
	require.Empty(t, l.zonesSeen(req.Name), "nothing is made that nobody could reach")
}

func (l *lab) post(path, body string) int {
	l.Helper()
	recorder := httptest.NewRecorder()
	l.cloud.ServeHTTP(recorder, httptest.NewRequest(http.MethodPost, path, strings.NewReader(body)))
	return recorder.Code
}

func TestWithoutTheRightToOpenThePortNothingIsMade(t *testing.T) {
	t.Parallel()
	l := newLab(t, managed)
	defer l.cloud.Forbid("compute.firewalls.create")()
	_, err := l.Create(t.Context(), request())
	require.Equal(t, providers.ErrPermanent, providers.ClassOf(err))
	require.ErrorContains(t, err, "firewall")
	require.Zero(t, l.cloud.Count("instances.insert"))
}

func TestAManualFirewallIsNobodysBusiness(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	id := l.create(request())
	require.NoError(t, l.Delete(t.Context(), id))
	l.gone(id)
	for _, call := range l.cloud.Calls() {
		require.NotContains(t, call.Method, "firewalls")
	}
}
