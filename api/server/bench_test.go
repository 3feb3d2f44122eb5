package server_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/egressfleet/egressfleet/api/server"
	v1 "github.com/egressfleet/egressfleet/api/v1"
)

// busy is a server of the default options over so many proxies, with a list.
func busy(b *testing.B, n int) (s *server.Server, load func()) {
	b.Helper()
	proxies := make([]v1.Proxy, n)
	for i := range proxies {
		ip := fmt.Sprintf("10.0.%d.%d", i>>8, i&255)
		proxies[i] = running([]string{"default", "crawl"}[i%2], fmt.Sprintf("p%05d", i), ip)
	}
	s = server.New(newFleet(proxies...), server.Options{Clock: newClock()}) // or the list gets stale
	load = func() { s.Refresh(b.Context()) }
	load()
	return s, load
}

// sink is where an answer goes, without a copy of it.
type sink struct {
	header http.Header
	status int
}

func (s *sink) Header() http.Header         { return s.header }
func (s *sink) WriteHeader(status int)      { s.status = status }
func (s *sink) Write(p []byte) (int, error) { return len(p), nil }

// BenchmarkDiscovery is everything between net/http and the bytes of an answer.
func BenchmarkDiscovery(b *testing.B) {
	s, _ := busy(b, 1000)
	handler := s.Handler()
	for _, query := range []string{"", "?format=txt", "?namespace=crawl", "?format=txt&labels=team%3Dcrawlers&limit=10"} {
		for _, known := range []bool{false, true} {
			r := httptest.NewRequestWithContext(b.Context(), http.MethodGet, "http://127.0.0.1/v1/discovery"+query, nil)
			want := http.StatusOK
			if known {
				first := httptest.NewRecorder()
				handler.ServeHTTP(first, r)
				r.Header.Set("If-None-Match", first.Header().Get("ETag"))
				want = http.StatusNotModified
			}
			b.Run(fmt.Sprintf("%d%s", want, query), func(b *testing.B) {
				b.ReportAllocs()
				for b.Loop() {
					answer := &sink{header: http.Header{}}
					handler.ServeHTTP(answer, r)
					require.Equal(b, want, answer.status)
				}
			})
		}
	}
}

// BenchmarkSnapshot is a refresh and both formats of the list, without Temporal.
func BenchmarkSnapshot(b *testing.B) {
	for _, n := range []int{100, 1000, 10_000} {
		s, load := busy(b, n)
		handler := s.Handler()
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				load()
				for _, query := range []string{"", "?format=txt"} {
					r := httptest.NewRequestWithContext(b.Context(), http.MethodGet, "http://127.0.0.1/v1/discovery"+query, nil)
					answer := &sink{header: http.Header{}}
					handler.ServeHTTP(answer, r)
					require.Equal(b, http.StatusOK, answer.status)
				}
			}
		})
	}
}
