// Package access says who may ask the API for what: tokens, what each is for, and the
// file that lists them. It imports libraries only, and knows neither HTTP nor the fleet.
// Start reading at Grant, then File.
package access

import (
	"context"
	"slices"
	"time"

	"golang.org/x/time/rate"
	"k8s.io/apimachinery/pkg/labels"
)

// Scope is what a token is for. Each one but the first holds those before it.
type Scope string

// The scopes, from the least to the most.
const (
	ScopeDiscovery Scope = "discovery" // what crawlers ask: which proxies to use, and what became of them
	ScopeRead      Scope = "read"      // what people look at: proxies, timelines, providers, the page
	ScopeWrite     Scope = "write"     // what changes a proxy
	ScopeAdmin     Scope = "admin"     // what leaves something behind at a backend
)

// Scopes returns every scope, the least first.
func Scopes() []Scope { return []Scope{ScopeDiscovery, ScopeRead, ScopeWrite, ScopeAdmin} }

// Grant is what one token may do. It is never changed, apart from its allowance and its
// end.
type Grant struct {
	Name       string // who has it; what the audit log says
	scope      Scope  // the most of its scopes
	namespaces []string
	selector   labels.Selector
	allowance  *rate.Limiter // nil: none
	over       chan struct{} // nil: it never is
	removed    bool          // set before over is closed
}

// Everything is the grant where no tokens are required.
func Everything() *Grant {
	return &Grant{Name: "anybody", scope: ScopeAdmin, selector: labels.Everything()}
}

// May reports whether the grant holds a scope.
func (g *Grant) May(s Scope) bool {
	return slices.Index(Scopes(), s) <= slices.Index(Scopes(), g.scope)
}

// Only reports whether the grant holds a scope and none above it.
func (g *Grant) Only(s Scope) bool { return g.scope == s }

// Enters reports whether the grant is for a namespace.
func (g *Grant) Enters(namespace string) bool {
	return len(g.namespaces) == 0 || slices.Contains(g.namespaces, namespace)
}

// Sees reports whether the grant is for a proxy.
func (g *Grant) Sees(namespace string, of map[string]string) bool {
	return g.Enters(namespace) && g.selector.Matches(labels.Set(of))
}

// Restricted reports whether there may be proxies that the grant is not for.
func (g *Grant) Restricted() bool { return len(g.namespaces) > 0 || g.Labelled() }

// Labelled reports whether the labels of a proxy decide.
func (g *Grant) Labelled() bool { return !g.selector.Empty() }

// Labels is the selector that proxies have to match, as it was written.
func (g *Grant) Labels() string { return g.selector.String() }

// Take uses up one request of the allowance, or says after which time there is one.
func (g *Grant) Take(now time.Time) (wait time.Duration) {
	if g.allowance == nil {
		return 0
	}
	r := g.allowance.ReserveN(now, 1)
	if wait = r.DelayFrom(now); wait > 0 {
		r.CancelAt(now) // who is refused has used nothing up
	}
	return wait
}

// Over is closed when the file says something else of the token, or nothing: whoever is
// answered for long by this grant has to ask again. It is nil where that never happens.
func (g *Grant) Over() <-chan struct{} { return g.over }

// Removed reports whether a grant that is over is so because its token is known no more.
func (g *Grant) Removed() bool {
	select {
	case <-g.over:
		return g.removed
	default:
		return false
	}
}

// end is called once.
func (g *Grant) end(removed bool) {
	g.removed = removed
	close(g.over)
}

// same reports whether both let in for the same, by the same name.
func (g *Grant) same(other *Grant) bool {
	return g.Name == other.Name && g.scope == other.scope && slices.Equal(g.namespaces, other.namespaces) &&
		g.Labels() == other.Labels() && g.allowance.Limit() == other.allowance.Limit()
}

type key struct{}

// With returns a context that carries a grant.
func With(ctx context.Context, g *Grant) context.Context { return context.WithValue(ctx, key{}, g) }

// Of returns the grant of a request. One that nobody let in has none, and may nothing.
func Of(ctx context.Context) *Grant {
	if g, ok := ctx.Value(key{}).(*Grant); ok {
		return g
	}
	return &Grant{Name: "nobody", selector: labels.Nothing()}
}
