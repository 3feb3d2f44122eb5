//go:build tools

package runbooks_test

import (
	"net/http"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

const credentials, codecKeys = "rotate-credentials.md", "rotate-codec-keys.md"

func TestRotationsNeedNoRestart(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.want("google", "gcp", "Running")
	w.want("pod", "kubernetes", "Running")
	w.setsTheRetention()
	w.rotatesATokenOfTheAPI()
	w.rotatesTheKeyOfGCP()
	w.rotatesTheTokenOfKubernetes()
	w.keepsWhatServesWhereAFileIsBad()
	require.True(t, w.runs(), "the worker is the one of the beginning")
	w.rotatesTheKeysOfTheCodec()
}

// setsTheRetention is what docs/production.md begins with.
func (w *world) setsTheRetention() {
	w.shell(w.typed("../production.md", "--retention"))
	said := w.shell("bin/temporal operator namespace describe --namespace default --output json")
	require.Contains(w.t, said, `"workflowExecutionRetentionTtl": "604800s"`)
}

// rotatesATokenOfTheAPI puts one beside the first, and takes it out again.
func (w *world) rotatesATokenOfTheAPI() {
	before, err := os.ReadFile(w.path("tokens.yaml"))
	require.NoError(w.t, err)
	said := strings.Fields(w.shell(w.typed(credentials, "tokens.yaml") + `echo "$NEW"`))
	token := said[len(said)-1]
	require.Eventually(w.t, func() bool { return w.status(token) == http.StatusOK }, soon, tick)
	w.write("tokens.yaml.next", string(before))
	w.shell("mv tokens.yaml.next tokens.yaml")
	require.Eventually(w.t, func() bool { return w.status(token) == http.StatusUnauthorized }, soon, tick)
	require.Equal(w.t, http.StatusOK, w.status(w.token))
}

// looks types what the page has somebody look at, until every target is ready or none of
// that provider is.
func (w *world) looks(provider, ready string) {
	w.t.Helper()
	var said string
	require.Eventually(w.t, func() bool {
		said = w.shell(w.typed(credentials, "egressfleet_providers_reload"), keysOf(w.dir))
		for line := range strings.Lines(said) {
			words := strings.Fields(line)
			if len(words) > 2 && words[0] == provider && strings.Contains(line, " "+ready+" ") {
				return strings.Contains(said, "egressfleet_providers_reload_failed 0")
			}
		}
		return false
	}, soon, tick, "%s is ready: %s", provider, ready)
}

// rotatesTheKeyOfGCP has two keys for a while.
func (w *world) rotatesTheKeyOfGCP() {
	w.looks("gcp", "yes")
	require.Equal(w.t, "first", w.gate.used())
	w.gate.take("first", "second")
	w.write("new.json", serviceAccount(w.t, "second"))
	w.shell(w.typed(credentials, "install -m 600"), "NEW="+w.path("new.json"), "FILE="+w.path("gcp.json"))
	require.Eventually(w.t, func() bool { w.looks("gcp", "yes"); return w.gate.used() == "second" }, soon, tick)
	w.gate.take("second")
	w.looks("gcp", "yes")
	w.want("google-2", "gcp", "Running")
}

// rotatesTheTokenOfKubernetes comes late: the old one is refused before there is a new one.
func (w *world) rotatesTheTokenOfKubernetes() {
	w.looks("kubernetes", "yes")
	token := w.kubernetes.SwapToken()
	w.looks("kubernetes", "no")
	w.want("pod-2", "kubernetes", "Blocked")
	w.mount("kubernetes", w.kubeconfig(token))
	w.looks("kubernetes", "yes")
	w.reaches("pod-2", "Running")
	require.Len(w.t, w.kubernetes.Pods(w.t), 2)
}

// keepsWhatServesWhereAFileIsBad is what the page says of a file that turned bad.
func (w *world) keepsWhatServesWhereAFileIsBad() {
	w.write("new.json", "{ no key")
	w.shell(w.typed(credentials, "install -m 600"), "NEW="+w.path("new.json"), "FILE="+w.path("gcp.json"))
	look := w.typed(credentials, "egressfleet_providers_reload")
	require.Eventually(w.t, func() bool {
		said := w.shell(look, keysOf(w.dir))
		return strings.Contains(said, "egressfleet_providers_reload_failed 1") && strings.Contains(said, "credentialsFile")
	}, soon, tick)
	w.want("google-3", "gcp", "Running")
	w.write("new.json", serviceAccount(w.t, "second"))
	w.shell(w.typed(credentials, "install -m 600"), "NEW="+w.path("new.json"), "FILE="+w.path("gcp.json"))
	w.looks("gcp", "yes")
	require.NotContains(w.t, w.log.String(), "PRIVATE KEY")
}
