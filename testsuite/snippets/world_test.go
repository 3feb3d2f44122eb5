//go:build tools && linux

package snippets

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	v1 "github.com/egressfleet/egressfleet/api/v1"
	"github.com/egressfleet/egressfleet/testsuite/devserver"
)

const (
	api  = "http://127.0.0.1:8080"
	soon = 2 * time.Minute // generous: the machine may be busy
	tick = 100 * time.Millisecond
	// samples is how many proxies `make run` makes.
	samples = 2
)

// world is the machine of somebody who has started `make run`, and example.com.
type world struct {
	t       *testing.T
	site    *site
	egress  []string // by which the proxies are seen
	proxies []string // as http://ip:port
}

func newWorld(t *testing.T) *world {
	t.Helper()
	w := &world{t: t, site: newSite(t)}
	w.startFleet()
	w.settle()
	for _, p := range w.discovery().Proxies {
		w.egress, w.proxies = append(w.egress, p.EgressIP), append(w.proxies, p.URL)
	}
	require.NotContains(t, w.egress, "")
	return w
}

// startFleet is `make run`, until the end of the test.
func (w *world) startFleet() {
	w.t.Helper()
	cmd := exec.Command(filepath.Join(w.bin(), "starter"), "dev") //nolint:noctx // it ends with the test
	cmd.Env = append(os.Environ(), "EGRESSFLEET_DEV_DIR="+filepath.Join(w.t.TempDir(), "dev"))
	out, err := cmd.StdoutPipe()
	require.NoError(w.t, err)
	cmd.Stderr = cmd.Stdout
	require.NoError(w.t, cmd.Start())
	read := make(chan struct{})
	w.t.Cleanup(func() {
		_ = cmd.Process.Signal(os.Interrupt)
		<-read
		_ = cmd.Wait()
	})
	var said []string
	lines := bufio.NewScanner(out)
	for lines.Scan() {
		if said = append(said, lines.Text()); lines.Text() == "egressfleet is ready" {
			go func() { defer close(read); _, _ = io.Copy(io.Discard, out) }()
			return
		}
	}
	close(read)
	require.Fail(w.t, "the fleet ended before it was ready", strings.Join(said, "\n"))
}

// settle waits until discovery has every sample with a verdict: what is picked depends on
// it, and a first verdict in the middle of a block would move a key.
func (w *world) settle() {
	w.t.Helper()
	cmd := exec.CommandContext(w.t.Context(), filepath.Join(w.bin(), "starter"), "health", "run")
	out, err := cmd.CombinedOutput()
	require.NoError(w.t, err, string(out))
	require.Eventually(w.t, func() bool {
		probed := 0
		for _, p := range w.discovery().Proxies {
			if !p.Unprobed {
				probed++
			}
		}
		return probed == samples
	}, soon, tick)
}

// bin is the folder of what `make build` made.
func (w *world) bin() string {
	w.t.Helper()
	root, err := devserver.Root()
	require.NoError(w.t, err)
	return filepath.Join(root, "bin")
}

func (w *world) call(method, path string, answer any) {
	w.t.Helper()
	ctx, cancel := context.WithTimeout(w.t.Context(), soon)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, method, api+path, strings.NewReader(""))
	require.NoError(w.t, err)
	res, err := http.DefaultClient.Do(req)
	require.NoError(w.t, err)
	defer func() { _ = res.Body.Close() }()
	body, err := io.ReadAll(res.Body)
	require.NoError(w.t, err)
	require.Less(w.t, res.StatusCode, http.StatusBadRequest, string(body))
	if answer != nil {
		require.NoError(w.t, json.Unmarshal(body, answer), string(body))
	}
}

func (w *world) discovery() (list v1.Discovery) {
	w.t.Helper()
	w.call(http.MethodGet, "/v1/discovery", &list)
	return list
}

// hold takes a sample out of discovery until resume, and waits until nobody is told of it.
func (w *world) hold(name string) { w.tell(name, "hold", false) }

func (w *world) resume(name string) { w.tell(name, "resume", true) }

func (w *world) tell(name, what string, listed bool) {
	w.t.Helper()
	w.call(http.MethodPost, "/v1/namespaces/default/proxies/"+name+"/"+what, nil)
	require.Eventually(w.t, func() bool {
		for _, p := range w.discovery().Proxies {
			if p.Name == name {
				return listed
			}
		}
		return !listed
	}, soon, tick)
}

// site is example.com, by HTTP and by TLS. It tells everybody whom it sees.
type site struct {
	roots string // a file with the certificate that it shows

	mu   sync.Mutex
	seen []string // addresses of those who asked
}

func newSite(t *testing.T) *site {
	t.Helper()
	s := &site{roots: filepath.Join(t.TempDir(), "roots.pem")}
	secure := certificate(t, s.roots)
	for _, port := range []string{"80", "443"} {
		listener, err := new(net.ListenConfig).Listen(t.Context(), "tcp", net.JoinHostPort(siteAddress, port))
		require.NoError(t, err)
		server := httptest.NewUnstartedServer(s)
		_ = server.Listener.Close()
		server.Listener = listener
		server.Config.ErrorLog = log.New(io.Discard, "", 0) // Chromium tries TLS first, and trusts nobody here
		if port == "443" {
			server.TLS = secure
			server.StartTLS()
		} else {
			server.Start()
		}
		t.Cleanup(server.Close)
	}
	return s
}

func (s *site) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	host, _, _ := net.SplitHostPort(r.RemoteAddr)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.seen = append(s.seen, host)
	w.Header().Set("Content-Type", "text/html")
	_, _ = fmt.Fprintf(w, "hello %s\n", host)
}

// visitors returns who has asked since it was called before.
func (s *site) visitors() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	seen := s.seen
	s.seen = nil
	return seen
}
