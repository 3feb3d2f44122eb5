package gcp_test

import (
	"context"
	"encoding/json"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/egressfleet/egressfleet/providers"
	"github.com/egressfleet/egressfleet/providers/gcp"
	"github.com/egressfleet/egressfleet/testsuite/gcefake"
)

// Lists that were captured, page by page, through the real client.
func TestCapturedLists(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"list-unreachable", "list-403-second-page"} {
		text, err := os.ReadFile(filepath.Join("testdata", name+".json"))
		require.NoError(t, err)
		var c struct {
			Pages []json.RawMessage
			Want  struct {
				Class   string
				Names   []string
				Omitted []string `json:"log_omitted"`
			}
		}
		require.NoError(t, json.Unmarshal(text, &c))
		l := newLab(t)
		page := 0
		defer l.gate.with(func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			if !strings.HasSuffix(r.URL.Path, "/aggregated/instances") {
				_, _ = w.Write([]byte("{}"))
				return
			}
			var answer struct {
				Status int
				Body   json.RawMessage
			}
			_ = json.Unmarshal(c.Pages[page], &answer)
			if answer.Status == 0 {
				answer.Status, answer.Body = http.StatusOK, c.Pages[page]
			}
			page++
			w.WriteHeader(answer.Status)
			_, _ = w.Write(answer.Body)
		})()
		inventory, err := l.Provider.(providers.Inventorier).Inventory(t.Context())
		require.Equal(t, len(c.Pages), page, "%s: every page is asked for", name)
		if c.Want.Class != "" {
			require.Equal(t, providers.ErrQuotaExceeded, providers.ClassOf(err), name)
			require.Empty(t, inventory.Instances, name)
			continue
		}
		require.NoError(t, err, name)
		require.Len(t, inventory.Instances, len(c.Want.Names), name)
		for n, want := range c.Want.Names {
			require.True(t, strings.HasSuffix(inventory.Instances[n].ID, "/"+want), name)
		}
		require.Equal(t, c.Want.Omitted, inventory.Omitted, name)
	}
}

func (l *lab) check(ctx context.Context) []providers.TargetStatus {
	return l.Provider.(providers.Checker).Check(ctx)
}

func TestACheckHasTheProjectAndEachZone(t *testing.T) {
	t.Parallel()
	l := newLab(t, func(cfg *gcp.Config) { cfg.Zones = []string{zoneB, zoneA} })
	l.cloud.SetQuota(project, region, "CPUS", 8)
	l.create(request())
	all := l.check(t.Context())
	require.Len(t, all, 3)
	for n, target := range []string{"projects/" + project, "zones/" + zoneB, "zones/" + zoneA} {
		require.Equal(t, target, all[n].Target, "in the order of the configuration")
		require.True(t, all[n].Ready, "%+v", all[n])
	}
	require.Equal(t, "6 of 8 left", all[1].Details["CPUS"], "an e2-small counts for two")
	require.InDelta(t, 6, all[1].Left["CPUS"], 0)
	for _, metric := range []string{"INSTANCES", "IN_USE_ADDRESSES"} {
		require.Contains(t, all[1].Details[metric], " left", metric)
	}
	l.cloud.Calls()
	before := l.cloud.Count("instances.aggregatedList")
	l.check(t.Context())
	require.Equal(t, before+1, l.cloud.Count("instances.aggregatedList"), "one page")
}

func TestReasonsOfACheck(t *testing.T) {
	t.Parallel()
	for want, shut := range map[string]http.HandlerFunc{
		providers.ReasonUnreachable:  down,
		providers.ReasonUnauthorized: unauthorized,
		providers.ReasonAPIError:     htmlNotFound,
		providers.ReasonForbidden: func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(http.StatusForbidden)
			_, _ = w.Write([]byte(`{"error": {"code": 403, "message": "m", "errors": [{"reason": "forbidden"}]}}`))
		},
	} {
		l := newLab(t, func(cfg *gcp.Config) { cfg.Zones = []string{zoneA} })
		open := l.gate.with(shut)
		for _, s := range l.check(t.Context()) {
			require.False(t, s.Ready)
			require.Equal(t, want, s.Reason, s.Message)
			require.NotEmpty(t, s.Message)
		}
		open()
	}
	l := newLab(t, func(cfg *gcp.Config) { cfg.CallTimeout = "20ms" })
	defer l.gate.stall()()
	require.Equal(t, providers.ReasonTimeout, l.check(t.Context())[0].Reason)
}

func TestARateLimitIsNoMissingRight(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	l.cloud.Inject(gcefake.Fault{Method: "instances.aggregatedList", Answer: gcefake.Captured("get-403-rateLimit-read")})
	require.Equal(t, providers.ReasonAPIError, l.check(t.Context())[0].Reason)
}

func TestACheckNamesThePermissionsThatAreMissing(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	restore := l.cloud.Forbid("compute.instances.create")
	s := l.check(t.Context())[0]
	require.False(t, s.Ready)
	require.Equal(t, providers.ReasonForbidden, s.Reason)
	require.Equal(t, "missing on the project: compute.instances.create", s.Message)
	restore()
	require.True(t, l.check(t.Context())[0].Ready)
	l.cloud.Inject(gcefake.Fault{Method: "projects.testIamPermissions", Answer: gcefake.Captured("get-503-backend")})
	s = l.check(t.Context())[0]
	require.True(t, s.Ready, "that it cannot be asked is no fault of the target")
	require.Contains(t, s.Details["permissions"], "not tested")
}
