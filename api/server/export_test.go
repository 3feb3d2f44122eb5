package server

import (
	"context"
	"errors"
	"net/http"
	"time"

	"github.com/labstack/echo/v4"

	"github.com/egressfleet/egressfleet/api/access"
	v1 "github.com/egressfleet/egressfleet/api/v1"
)

// Refresh loads the snapshot as a tick does.
func (s *Server) Refresh(ctx context.Context) {
	s.feedback.Load(ctx)
	s.snapshot.refresh(ctx)
}

// RefreshList leaves the bans unknown.
func (s *Server) RefreshList(ctx context.Context) { s.snapshot.refresh(ctx) }

// SendReports does what a box does on its way.
func (s *Server) SendReports(ctx context.Context) {
	ctx, cancel := context.WithCancel(ctx)
	cancel() // at its end, a box sends what is left
	s.feedback.Run(ctx, func() bool { return false })
}

// Waiting is how many wait for news.
func (s *Server) Waiting() int { return s.snapshot.news.taken() }

// KeysPeriod is between two looks at the keys.
const KeysPeriod = keysPeriod

// The places of those who wait.
const (
	AllPlaces = allPlaces
	OwnPlaces = ownPlaces
)

// TakePlaces takes places of a token for good, as so many who wait for news do, or for
// what a write has asked for.
func (s *Server) TakePlaces(ctx context.Context, n int) error {
	for range n {
		if _, err := s.snapshot.news.take(ctx); err != nil {
			return err
		}
	}
	return nil
}

// NoPlace decides whether one more may wait.
func NoPlace(all, own int) (kind string) {
	var refused *problem
	if errors.As(noPlace("x", all, own), &refused) {
		return refused.kind.name
	}
	return ""
}

// LookEvery is between two looks at a Proxy that a write waits for.
const LookEvery = lookEvery

// Routes lists what is served.
func (s *Server) Routes() []*echo.Route { return s.echo.Routes() }

// IsPage reports whether a route is for people, which the contract is not about.
func IsPage(route string) bool { return isPage(route) }

// QueryParameters are the names that each operation takes.
func QueryParameters() map[string][]string {
	names := map[string][]string{}
	for name, o := range operations {
		names[name] = o.query
	}
	return names
}

// Scopes are what each operation needs.
func Scopes() map[string]access.Scope {
	scopes := map[string]access.Scope{}
	for name, o := range operations {
		scopes[name] = o.scope
	}
	return scopes
}

// HTTPServer is what Run serves with.
func (s *Server) HTTPServer() *http.Server { return s.httpServer() }

// Standings counts Proxies by "phase provider reason".
func Standings(proxies []v1.Proxy) map[string]int {
	out := map[string]int{}
	for at, n := range standings(proxies) {
		out[at.phase+" "+at.provider+" "+at.reason] = n
	}
	return out
}

// Stuck counts the Proxies of each provider whose removal takes too long.
func Stuck(proxies []v1.Proxy, at time.Time) map[string]int { return worries(proxies, stuckAt(at)) }

// Open counts the Proxies of each provider that let strangers in.
func Open(proxies []v1.Proxy) map[string]int { return worries(proxies, open) }

// HandOut answers as crawlers are answered all the time, or leaves it to the route.
func (s *Server) HandOut(w http.ResponseWriter, r *http.Request) bool { return s.handOut(w, r) }

// Route answers by the route alone.
func (s *Server) Route(w http.ResponseWriter, r *http.Request) { s.echo.ServeHTTP(w, r) }
