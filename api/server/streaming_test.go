package server_test

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/egressfleet/egressfleet/api/server/openapi"
)

// gauge is a client that keeps nothing, and knows how much came, and how much at once.
type gauge struct {
	header    http.Header
	sum, most int
}

func (g *gauge) Header() http.Header { return g.header }
func (g *gauge) WriteHeader(int)     {}

func (g *gauge) Write(p []byte) (int, error) {
	g.sum, g.most = g.sum+len(p), max(g.most, len(p))
	return len(p), nil
}

// get sends one request to a client that only measures.
func (s *stage) get(t *testing.T, target string) *gauge {
	t.Helper()
	g := &gauge{header: http.Header{}}
	s.server.Handler().ServeHTTP(g, httptest.NewRequestWithContext(t.Context(), "GET", "http://127.0.0.1"+target, nil))
	return g
}

func TestAListIsWrittenOneProxyAtATime(t *testing.T) {
	t.Parallel()
	s := newStage(largeFleet()...)
	for _, target := range []string{"/v1/proxies", "/v1/namespaces/default/proxies", "/v1/proxies?limit=1000"} {
		g := s.get(t, target)
		require.Greater(t, g.sum, 100<<10, target)
		require.Less(t, g.most, g.sum/100, "%s: bytes that are held at once, of %d", target, g.sum)
	}
}

func TestAListIsWhatItsShapeSays(t *testing.T) {
	t.Parallel()
	for name, row := range map[string]struct {
		fleet  int
		target string
	}{
		"none": {0, "/v1/proxies"}, "one": {1, "/v1/proxies"}, "several": {3, "/v1/proxies"},
		"a page that is not the last": {3, "/v1/proxies?limit=2"}, "a page of one": {3, "/v1/proxies?limit=1"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := newStage(largeFleet()[:row.fleet]...).ask(t, "GET", row.target, "").Body.String()
			var list openapi.ProxyList
			require.NoError(t, json.Unmarshal([]byte(got), &list))
			var want strings.Builder
			require.NoError(t, json.NewEncoder(&want).Encode(list))
			require.Equal(t, want.String(), got)
		})
	}
}

// TestReadersShareOneDocument is not parallel: it measures what the process allocates.
func TestReadersShareOneDocument(t *testing.T) {
	const readers = 100
	s := opened(t, largeFleet()...)
	for _, format := range []string{"json", "txt"} {
		target := "/v1/discovery?format=" + format
		size := s.get(t, target).sum // the first reader has it made
		require.Greater(t, size, 20<<10, target)
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		for range readers {
			require.Equal(t, size, s.get(t, target).sum)
		}
		runtime.ReadMemStats(&after)
		require.Less(t, (after.TotalAlloc-before.TotalAlloc)/readers, uint64(size)/2,
			"%s: bytes that a reader takes, of %d", target, size)
	}
}
