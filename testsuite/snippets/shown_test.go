//go:build tools && linux

package snippets

import (
	"bufio"
	"encoding/csv"
	"encoding/json"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"

	"github.com/stretchr/testify/require"

	v1 "github.com/egressfleet/egressfleet/api/v1"
)

func filtered(w *world, text string) {
	w.t.Helper()
	cmd, out := w.start(text, shell)
	require.NoError(w.t, cmd.Wait())
	rows, err := csv.NewReader(out).ReadAll()
	require.NoError(w.t, err)
	require.Len(w.t, rows, 1+len(w.proxies), "a header and the samples")
	for _, row := range rows[1:] {
		require.Contains(w.t, strings.Join(row, " "), "default sample-")
	}
}

// followed looks at the file while a proxy goes and comes back.
func followed(w *world, text string) {
	w.t.Helper()
	cmd, _ := w.start(text, shell)
	holds := func(n int) func() bool {
		return func() bool {
			list, _ := os.ReadFile(filepath.Join(cmd.Dir, "proxies.txt"))
			return len(strings.Fields(string(list))) == n
		}
	}
	require.Eventually(w.t, holds(2), soon, tick)
	w.hold("sample-a")
	require.Eventually(w.t, holds(1), soon, tick)
	w.resume("sample-a")
	require.Eventually(w.t, holds(2), soon, tick)
}

// told reads the list at once, and again when it has changed.
func told(w *world, text string) {
	w.t.Helper()
	cmd := w.prepare(text, shell)
	out, err := cmd.StdoutPipe()
	require.NoError(w.t, err)
	require.NoError(w.t, cmd.Start())
	lines := bufio.NewScanner(out)
	next := func() int {
		w.t.Helper()
		for lines.Scan() {
			if data, is := strings.CutPrefix(lines.Text(), "data: "); is {
				var list v1.Discovery
				require.NoError(w.t, json.Unmarshal([]byte(data), &list))
				return len(list.Proxies)
			}
		}
		require.Fail(w.t, "the events ended")
		return 0
	}
	require.Equal(w.t, 2, next())
	w.hold("sample-a")
	require.Equal(w.t, 1, next())
	w.resume("sample-a")
	require.Equal(w.t, 2, next())
}

// target is what Prometheus says of one.
type target struct {
	Labels map[string]string
	Health string
}

// scraped asks a Prometheus with the page's configuration for its targets.
func scraped(w *world, text string) {
	w.t.Helper()
	blackbox(w)
	w.start(text, program{file: "prometheus.yml", command: []string{
		"prometheus", "--config.file=prometheus.yml", "--storage.tsdb.path=data",
		"--web.listen-address=127.0.0.1:9090", "--log.level=warn",
	}})
	want := []target{{map[string]string{"job": "egressfleet", "instance": "127.0.0.1:9464"}, "up"}}
	for _, p := range w.discovery().Proxies {
		want = append(want, target{map[string]string{
			"job": "proxies", "instance": strings.TrimPrefix(p.URL, "http://"),
			"proxy": p.Namespace + "/" + p.Name, "provider": p.Provider,
		}, "up"})
	}
	require.Len(w.t, want, 3)
	require.Eventually(w.t, func() bool {
		found := targets(w)
		return len(found) == len(want) && allUp(found)
	}, soon, tick)
	require.ElementsMatch(w.t, want, targets(w))
}

func allUp(all []target) bool {
	for _, one := range all {
		if one.Health != "up" {
			return false
		}
	}
	return true
}

// targets are what Prometheus scrapes; none while it does not answer.
func targets(w *world) []target {
	w.t.Helper()
	req, err := http.NewRequestWithContext(w.t.Context(), http.MethodGet,
		"http://127.0.0.1:9090/api/v1/targets?state=active", nil)
	require.NoError(w.t, err)
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		return nil
	}
	defer func() { _ = res.Body.Close() }()
	var answer struct {
		Data struct{ ActiveTargets []target }
	}
	if json.NewDecoder(res.Body).Decode(&answer) != nil {
		return nil
	}
	return answer.Data.ActiveTargets
}

// blackbox stands in for the exporter: what it is asked to look at must be a proxy.
func blackbox(w *world) {
	w.t.Helper()
	listener, err := new(net.ListenConfig).Listen(w.t.Context(), "tcp", "127.0.0.1:9115")
	require.NoError(w.t, err)
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(out http.ResponseWriter, r *http.Request) {
		asked := r.URL.Query().Get("target")
		conn, err := new(net.Dialer).DialContext(r.Context(), "tcp", asked)
		if err != nil || r.URL.Path != "/probe" || r.URL.Query().Get("module") != "tcp_connect" {
			http.Error(out, asked, http.StatusBadRequest)
			return
		}
		_ = conn.Close()
		_, _ = out.Write([]byte("probe_success 1\n"))
	}))
	_ = server.Listener.Close()
	server.Listener = listener
	server.Start()
	w.t.Cleanup(server.Close)
}
