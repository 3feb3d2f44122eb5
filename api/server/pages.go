package server

import (
	"context"
	"errors"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/labstack/echo/v4"

	"github.com/egressfleet/egressfleet/api/access"
	"github.com/egressfleet/egressfleet/api/page"
	"github.com/egressfleet/egressfleet/api/server/openapi"
	v1 "github.com/egressfleet/egressfleet/api/v1"
	"github.com/egressfleet/egressfleet/starter/fleet"
)

const (
	fleetPath  = "/"
	proxyRoute = "/proxies/:namespace/:name"
	assetRoute = "/assets/:file"
	// shownRows is how many proxies a part of the table has.
	shownRows = 100
	// timelinePatience bounds the question that a worker answers: without one, the rest
	// of the page is worth showing.
	timelinePatience = 3 * time.Second
)

// pages serve people: they show what the operations tell, and ask what those take.
type pages struct {
	handlers
	clock     Clock
	desk      *login // nil: no tokens are asked for
	workflow  func(namespace, name string) string
	collected *collections
}

// pageFilters are the parameters of the table, in its address.
var pageFilters = append([]string{"q", "namespace", "live"}, listFilters...)

// register adds the routes; each has a scope, as those of the contract do.
func (p *pages) register(e *echo.Echo) {
	read, change := allow(access.ScopeRead), allow(access.ScopeWrite)
	e.GET(fleetPath, p.showFleet, read)
	e.GET(assetRoute, showAsset, allow(access.ScopeDiscovery))
	e.GET(proxyRoute, p.showProxy, read, checkParameters([]string{"done"}))
	e.GET(proxyRoute+"/:action", p.ask, change, checkParameters(nil))
	e.POST(proxyRoute+"/:action", p.act, change, fromAPage, checkParameters(nil))
}

// isPage reports whether a route is for people.
func isPage(route string) bool {
	return route == fleetPath || strings.HasPrefix(route, proxyRoute) || route == assetRoute
}

// showFleet answers with the table and what is around it.
func (p *pages) showFleet(c echo.Context) error {
	query, address := page.Clean(c.QueryParams())
	switch fromTable := c.Request().Header.Get("HX-Request") != ""; {
	case fromTable:
		c.Response().Header().Set("HX-Replace-Url", address) // a link that can be passed on
	case len(query) != len(c.QueryParams()): // a form sends what is empty, too
		return c.Redirect(http.StatusSeeOther, address)
	}
	if err := checkQuery(c.Request().URL, pageFilters); err != nil {
		return err
	}
	in, err := p.table(c.Request().Context(), query)
	if err != nil {
		return err
	}
	in.Viewer, in.Workflow = p.viewer(c), p.workflow
	return p.write(c, http.StatusOK, page.NewFleet(in))
}

// table is what the page of the fleet is made from. It asks the snapshot, as discovery
// does: who leaves a page open asks nobody else.
func (p *pages) table(ctx context.Context, query url.Values) (in page.FleetInput, err error) {
	l := listed{
		labels: query.Get("labels"), provider: query.Get("provider"), region: query.Get("region"),
		phase: query.Get("phase"), health: query.Get("health"), reason: query.Get("reason"),
		continued: query.Get("continue"), limit: shownRows,
	}
	keeps, err := l.filter()
	if err != nil {
		return in, err
	}
	behind, err := l.behind()
	if err != nil {
		return in, err
	}
	now, _, stale, err := p.snapshot.current()
	if err != nil {
		return in, err
	}
	in = page.FleetInput{Now: p.clock.Now(), AsOf: now.at, Stale: stale, Query: query}
	var found []v1.Proxy
	grant, namespace := access.Of(ctx), query.Get("namespace")
	for _, proxy := range now.proxies {
		if !grant.Sees(proxy.Metadata.Namespace, proxy.Metadata.Labels) {
			continue
		}
		in.All = append(in.All, proxy)
		if fits(namespace, proxy.Metadata.Namespace) && keeps(proxy) && page.Matches(proxy, query.Get("q")) {
			found = append(found, proxy)
		}
	}
	part := l.part(found, behind)
	in.Found, in.Items, in.Continue = len(found), part.Items, part.Continue
	in.Providers, in.Orphans = p.keepers(ctx, in.Now)
	return in, nil
}

// keepers are what looks after the whole fleet.
func (p *pages) keepers(ctx context.Context, now time.Time) (page.Providers, page.Orphans) {
	shown := page.Providers{ProvidersNote: "This process was given no providers file; ask a worker."}
	if list, told := p.told(ctx); told {
		shown = page.NewProviders(now, list)
	}
	if access.Of(ctx).Restricted() {
		return shown, page.Orphans{OrphansNote: "Your token is for a part of the fleet; this counts all of it."}
	}
	last, err := p.collected.last(ctx)
	switch {
	case errors.Is(err, fleet.ErrNoSchedule):
		return shown, page.Orphans{OrphansNote: "No worker has made its schedule yet."}
	case err != nil:
		return shown, page.Orphans{OrphansNote: "It could not be asked for just now: " + cut(err.Error(), shownDetail)}
	default:
		return shown, page.NewOrphans(now, last)
	}
}

// shownDetail of an error, in characters, is enough to know what it is about.
const shownDetail = 300

// showProxy answers with all that is known of one.
func (p *pages) showProxy(c echo.Context) error {
	ctx, namespace, name := c.Request().Context(), c.Param("namespace"), c.Param("name")
	if err := checkNames(namespace, name); err != nil {
		return err
	}
	found, err := p.seen(ctx, namespace, name)
	if err != nil {
		return err
	}
	key := newKey()
	in := page.ProxyInput{
		Viewer: p.viewer(c), Now: p.clock.Now(), Proxy: redacted(found), Workflow: p.workflow,
		Done: c.QueryParam("done"), Key: key,
	}
	patient, cancel := context.WithTimeout(ctx, timelinePatience)
	defer cancel()
	if in.Events, err = p.fleet.Timeline(patient, namespace, name); err != nil {
		in.NoEvents = "The timeline could not be asked for: " + problemOf(c, err).sentence() + "."
	}
	return p.write(c, http.StatusOK, page.NewProxy(in))
}

// ask answers with the question whether something is meant.
func (p *pages) ask(c echo.Context) error {
	namespace, name := c.Param("namespace"), c.Param("name")
	if err := checkNames(namespace, name); err != nil {
		return err
	}
	if _, err := p.seen(c.Request().Context(), namespace, name); err != nil {
		return err
	}
	view, asks := page.NewAsk(p.viewer(c), namespace, name, c.Param("action"), newKey())
	if !asks {
		return c.Redirect(http.StatusSeeOther, page.Path(namespace, name))
	}
	return p.write(c, http.StatusOK, view)
}

// act does what a form asks for, as the operation of the same name does.
func (p *pages) act(c echo.Context) error {
	r := c.Request()
	r.Body = http.MaxBytesReader(c.Response().Writer, r.Body, formBytes)
	if err := r.ParseForm(); err != nil {
		return &problem{kind: malformedRequest, detail: "the form cannot be read"}
	}
	o := order{
		c.Param("namespace"), c.Param("name"), c.Param("action"), r.PostForm.Get("reason"), r.PostForm.Get("for"),
		r.PostForm.Get("key"), r.PostForm.Get("sure") != "",
	}
	if err := o.do(r.Context(), p.handlers); err != nil {
		return err
	}
	return c.Redirect(http.StatusSeeOther, page.Path(o.namespace, o.name)+"?done="+o.action)
}

// order is what a form asks for.
type order struct {
	namespace, name, action, reason, lasts, key string
	sure                                        bool
}

// do asks the operation, which checks everything.
func (o order) do(ctx context.Context, h handlers) (err error) {
	why, key := &v1.Why{Reason: o.reason}, &o.key
	if o.action == "delete" && !o.sure {
		return &problem{kind: missingParameter, field: "sure", detail: "is missing: delete a proxy from the page that asks"}
	}
	switch o.action {
	case "hold":
		_, err = h.HoldProxy(ctx, openapi.HoldProxyRequestObject{
			Namespace: o.namespace, Name: o.name, Params: openapi.HoldProxyParams{IdempotencyKey: key},
			Body: &v1.Hold{Reason: o.reason, For: v1.Duration(strings.TrimSpace(o.lasts))},
		})
	case "resume":
		_, err = h.ResumeProxy(ctx, openapi.ResumeProxyRequestObject{
			Namespace: o.namespace, Name: o.name, Params: openapi.ResumeProxyParams{IdempotencyKey: key}, Body: why,
		})
	case "replace":
		_, err = h.ReplaceProxy(ctx, openapi.ReplaceProxyRequestObject{
			Namespace: o.namespace, Name: o.name, Params: openapi.ReplaceProxyParams{IdempotencyKey: key}, Body: why,
		})
	case "retry":
		_, err = h.RetryProxy(ctx, openapi.RetryProxyRequestObject{
			Namespace: o.namespace, Name: o.name, Params: openapi.RetryProxyParams{IdempotencyKey: key}, Body: why,
		})
	case "delete":
		_, err = h.DeleteProxy(ctx, openapi.DeleteProxyRequestObject{
			Namespace: o.namespace, Name: o.name, Params: openapi.DeleteProxyParams{Reason: o.reason},
		})
	default:
		err = echo.ErrNotFound
	}
	return err
}

// showAsset answers with a file that pages load. Its address changes with it.
func showAsset(c echo.Context) error {
	asset, there := page.Assets()[c.Param("file")]
	if !there {
		return echo.ErrNotFound
	}
	header := c.Response().Header()
	header.Set(echo.HeaderCacheControl, "private, max-age=31536000, immutable")
	header.Set(echo.HeaderContentSecurityPolicy, "default-src 'none'")
	return c.Blob(http.StatusOK, asset.Type, asset.Content)
}

func (p *pages) viewer(c echo.Context) page.Viewer {
	grant, let := c.Get(grantKey).(*access.Grant)
	if !let {
		return page.Viewer{}
	}
	return page.Viewer{Who: grant.Name, Known: p.desk != nil, MayWrite: grant.May(access.ScopeWrite)}
}
