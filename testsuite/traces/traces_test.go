//go:build tools

package traces

import (
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// sentinel is in the token, the cloud-init and the reason of what is asked.
const sentinel = "s3ntinel-d0-not-tell"

func TestATraceGoesFromTheRequestToTheBackend(t *testing.T) { //nolint:paralleltest // one world for all of it
	w := newWorld(t)
	for provider, backend := range map[string]string{
		"local": "", "gcp": "HTTP POST", "kubernetes": "kubernetes.POST pods",
	} {
		t.Run(provider, func(t *testing.T) { //nolint:paralleltest // as above
			w.create(provider)
			require.Eventually(t, func() bool { return w.jaeger.Of("PUT", provider).Created(backend) }, soon, tick,
				"the create of %s is below its request, and the backend's call %q below the create:\n%s",
				provider, backend, w.tree("PUT", provider))
			require.Eventually(t, func() bool { return w.phase(provider) == "Running" }, soon, tick)
		})
	}
	t.Run("the page shows what Jaeger has", func(t *testing.T) { //nolint:paralleltest // as above
		page, err := os.ReadFile("../../docs/tracing.md")
		require.NoError(t, err)
		want := string(regexp.MustCompile("(?s)```tree\n(.*?)```").FindSubmatch(page)[1])
		require.Eventually(t, func() bool { return w.tree("PUT", "gcp") == want }, soon, tick,
			"put this into docs/tracing.md:\n%s", w.tree("PUT", "gcp"))
	})
	t.Run("a delete is a trace of its own", func(t *testing.T) { //nolint:paralleltest // as above
		w.deleted("local")
		require.Eventually(t, func() bool {
			tree := w.tree("DELETE", "local")
			return strings.Contains(tree, "provider.delete [ok]") && strings.Contains(tree, "provider.get [ok]")
		}, soon, tick, "%s", w.tree("DELETE", "local"))
	})
	t.Run("Temporal's figures are beside ours", func(t *testing.T) { //nolint:paralleltest // as above
		for _, want := range []string{
			"temporal_num_pollers{", "temporal_workflow_task_queue_poll_succeed_total{",
			"egressfleet_discovery_snapshot_age_seconds ",
			`egressfleet_proxies{phase="Running",provider="gcp",reason=`,
		} {
			require.Eventually(t, func() bool {
				_, text := w.ask(http.MethodGet, fmt.Sprintf("http://127.0.0.1:%d/metrics", w.metrics), "")
				return strings.Contains(text, "\n"+want)
			}, soon, tick, want)
		}
	})
	t.Run("nobody else begins a trace, and none tells a secret", w.quiet)
}

func (w *world) path(name string) string { return "/v1/namespaces/default/proxies/" + name }

// create asks for a proxy, whose cloud-init is a secret where the provider takes one.
func (w *world) create(provider string) {
	w.t.Helper()
	spec := map[string]any{"provider": provider, "port": 3128}
	if provider == "gcp" {
		spec["cloudInit"] = map[string]any{"inline": "#cloud-config\n# " + sentinel + "\n"}
	}
	body, err := json.Marshal(map[string]any{"spec": spec})
	require.NoError(w.t, err)
	status, answer := w.ask(http.MethodPut, w.url(w.path(provider)), string(body))
	require.Equal(w.t, http.StatusCreated, status, answer)
}

func (w *world) deleted(name string) {
	w.t.Helper()
	status, answer := w.ask(http.MethodDelete, w.url(w.path(name)+"?reason="+sentinel), "")
	require.Equal(w.t, http.StatusAccepted, status, answer)
	require.Eventually(w.t, func() bool { return w.phase(name) == "" }, soon, tick, "it is gone")
}

func (w *world) phase(name string) string {
	var p struct{ Status struct{ Phase string } }
	_, answer := w.ask(http.MethodGet, w.url(w.path(name)), "")
	_ = json.Unmarshal([]byte(answer), &p) // what cannot be read has no phase
	return p.Status.Phase
}

func (w *world) tree(method, name string) string { return w.jaeger.Of(method, name).Tree() }

// quiet looks at everything that Jaeger has, after the schedules have run.
func (w *world) quiet(t *testing.T) {
	_, _ = w.ask(http.MethodPut, w.url(w.path("bad")), `{"spec": {"provider": "`+sentinel+` !", "port": 1}}`)
	_, _ = w.ask(http.MethodPut, w.url("/v1/"+sentinel+"?token="+sentinel), `{"spec": "`+sentinel+`"}`)
	require.Eventually(t, func() bool {
		found, _ := w.jaeger.Traces(map[string]string{"http.route": "/…"})
		return len(found) > 0 && len(w.jaeger.Of("PUT", "bad").Spans) > 0
	}, soon, tick)
	found, raw := w.jaeger.Traces(nil)
	require.GreaterOrEqual(t, len(found), 5)
	for _, trace := range found {
		require.Len(t, trace.Roots(), 1, trace.Tree())
		require.Regexp(t, "^(PUT|DELETE) /", trace.Roots()[0].OperationName, trace.Tree())
	}
	require.NotContains(t, raw, sentinel)
}
