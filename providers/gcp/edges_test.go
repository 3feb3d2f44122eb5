package gcp_test

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/otel"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"

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
			_, _ = w.Write([]byte(`{"error": {"code": 403, "message": "Required permission", "errors": [{"reason": "forbidden"}]}}`))
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

// --- the rule of the firewall ---

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

// --- spans ---

// Google's own spans are below the operation's, also those of calls whose client takes
// no context along; and without one there is none.
func TestGooglesSpansAreBelowTheOperations(t *testing.T) { //nolint:paralleltest // it sets the global provider
	strays := tracetest.NewSpanRecorder()
	before := otel.GetTracerProvider()
	otel.SetTracerProvider(sdktrace.NewTracerProvider(sdktrace.WithSpanProcessor(strays)))
	defer otel.SetTracerProvider(before)
	l := newLab(t, managed)
	spans := tracetest.NewSpanRecorder()
	tracer := sdktrace.NewTracerProvider(sdktrace.WithSpanProcessor(spans)).Tracer("test")
	ctx, parent := tracer.Start(t.Context(), "provider.create")
	calls := len(l.cloud.Calls())
	id, err := l.Create(ctx, request())
	require.NoError(t, err)
	_, err = l.ListByTag(ctx)
	require.NoError(t, err)
	l.check(ctx)
	parent.End()
	ended := spans.Ended()
	require.Len(t, ended, len(l.cloud.Calls())-calls+1, "one for each call, and the operation's")
	for _, span := range ended[:len(ended)-1] {
		require.Equal(t, parent.SpanContext().SpanID(), span.Parent().SpanID(), span.Name())
		require.True(t, strings.HasPrefix(span.InstrumentationScope().Name, "go.opentelemetry.io/contrib/"),
			"it is Google's own: %s", span.InstrumentationScope().Name)
	}
	_, err = l.Get(t.Context(), id)
	require.NoError(t, err)
	_, err = l.ListByTag(t.Context())
	require.NoError(t, err)
	l.check(t.Context())
	require.Empty(t, strays.Ended(), "no span without a parent")
	require.Len(t, spans.Ended(), len(ended))
}

// --- credentials ---

func TestABadCredentialDoesNotTakeThePlaceOfAGoodOne(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	id := l.create(request())
	l.mount("no key at all")
	var lines strings.Builder
	ctx := providers.WithLogger(t.Context(), slog.New(slog.NewTextHandler(&lines, nil)))
	_, err := l.Get(ctx, id)
	require.NoError(t, err, "the one before goes on")
	require.Contains(t, lines.String(), "credentialsFile")
	_, err = gcp.New(t.Context(), providerName, installation, l.cfg)
	require.ErrorContains(t, err, "credentialsFile", "so that the registry keeps the provider before")
	l.gate.takes("second")
	l.mount(keyFile(t, "second"))
	_, err = l.Get(t.Context(), id)
	require.NoError(t, err, "at the next call")
	require.Equal(t, []string{l.cfg.CredentialsFile}, l.Provider.(providers.Credentialed).CredentialFiles())
}

func TestNoCredentialIsInAnError(t *testing.T) {
	t.Parallel()
	whole := keyFile(t, "first")
	for what, content := range map[string]string{
		"cut off":       whole[:len(whole)/2],
		"another type":  strings.Replace(whole, "service_account", "s3ntinel", 1),
		"no key":        strings.Replace(whole, "BEGIN PRIVATE KEY", "BEGIN S3NTINEL", 1),
		"no JSON":       "s3ntinel-0123456789",
		"a wrong field": strings.Replace(whole, `"client_id":"1"`, `"client_id":["s3ntinel"]`, 1),
		"too long":      whole + strings.Repeat(" ", 1<<20),
	} {
		l := newLab(t)
		l.mount(content)
		_, err := gcp.New(t.Context(), providerName, installation, l.cfg)
		require.Error(t, err, what)
		require.NotContains(t, strings.ToLower(err.Error()), "s3ntinel", what)
		require.NotContains(t, err.Error(), privateKey()[60:90], what)
		_, err = l.Get(t.Context(), "zones/"+zoneA+"/instances/proxy-a")
		require.Equal(t, providers.ErrPermanent, providers.ClassOf(err), what)
		require.NotContains(t, strings.ToLower(err.Error()), "s3ntinel", what)
	}
}

// A token server that refuses may be told why tomorrow; what it was asked with stays out.
func TestARefusedTokenIsTransientAndSaysNoMore(t *testing.T) {
	t.Parallel()
	tokens := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(http.StatusBadRequest)
		_, _ = w.Write([]byte(`{"error": "invalid_grant", "error_description": "s3ntinel"}`))
	}))
	defer tokens.Close()
	l := newLab(t)
	subject := filepath.Join(t.TempDir(), "token")
	require.NoError(t, os.WriteFile(subject, []byte("s3ntinel-subject"), 0o600))
	config, err := json.Marshal(map[string]any{
		"type": "external_account", "audience": "//iam.googleapis.com/projects/1/locations/global/workloadIdentityPools/p/providers/x",
		"subject_token_type": "urn:ietf:params:oauth:token-type:jwt", "token_url": tokens.URL,
		"credential_source": map[string]string{"file": subject},
	})
	require.NoError(t, err)
	l.mount(string(config))
	_, err = l.Get(t.Context(), "zones/"+zoneA+"/instances/proxy-a")
	require.Equal(t, providers.ErrTransient, providers.ClassOf(err), "%v", err)
	require.NotContains(t, err.Error(), "s3ntinel")
	require.Equal(t, providers.ReasonUnauthorized, l.check(t.Context())[0].Reason)
}
