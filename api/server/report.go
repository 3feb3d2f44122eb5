package server

import (
	"cmp"
	"context"
	"encoding/json"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/labstack/echo/v4"

	"github.com/egressfleet/egressfleet/api/access"
	"github.com/egressfleet/egressfleet/api/discovery"
	"github.com/egressfleet/egressfleet/api/feedback"
	"github.com/egressfleet/egressfleet/api/server/openapi"
	v1 "github.com/egressfleet/egressfleet/api/v1"
	"github.com/egressfleet/egressfleet/starter/fleet"
)

const reportPath = "/v1/discovery/report"

// ReportProxy takes a report, and gives the next proxy.
func (h handlers) ReportProxy(
	ctx context.Context, r openapi.ReportProxyRequestObject,
) (openapi.ReportProxyResponseObject, error) {
	p, said := r.Params, *r.Body
	if err := said.Validate(); err != nil {
		return nil, err
	}
	domain, err := feedback.Domain("domain", said.Domain)
	if err != nil {
		return nil, err
	}
	w := wishes{"", p.Namespace, p.Provider, p.Region, p.Zone, p.Labels, string(p.Healthy), domain}
	// Those that the fleet remembers may not be loaded yet; the report is taken all the same.
	q, err := h.queryKnown(ctx, w, 0, false, discovery.JSON)
	if err != nil {
		return nil, err
	}
	last, age, stale, err := h.snapshot.current()
	if err != nil {
		return nil, err
	}
	of, err := last.reported(ctx, said.Proxy)
	if err != nil {
		return nil, err
	}
	answer := v1.Reported{Version: v1.DiscoveryVersion, GeneratedAt: last.at.UTC(), Stale: stale}
	if stale {
		answer.AgeSeconds = int(age.Seconds())
	}
	if answer.Counted, err = of.egressed(said.EgressIP); err != nil {
		return nil, err
	}
	if answer.Counted {
		answer.BannedUntil = h.feedback.Take(of.report(said.Kind, domain, h.snapshot.clock.Now()))
	}
	rest := discovery.Part(last.endpoints, func(e v1.Endpoint) bool { return !of.is(e) && q.keeps(e) })
	answer.Proxy = discovery.Pick(rest, said.Sticky)
	return reportResponse{answer, age}, nil
}

// reportResponse is a 200.
type reportResponse struct {
	answer v1.Reported
	age    time.Duration
}

// VisitReportProxyResponse writes the answer.
func (r reportResponse) VisitReportProxyResponse(w http.ResponseWriter) error {
	w.Header().Set("Age", strconv.Itoa(int(r.age.Seconds())))
	w.Header().Set(echo.HeaderContentType, echo.MIMEApplicationJSON)
	w.WriteHeader(http.StatusOK)
	return json.NewEncoder(w).Encode(r.answer)
}

// instance is a proxy of the list as a report is about it.
type instance struct {
	endpoint v1.Endpoint
	madeAt   time.Time
	runs     bool
}

// instances finds what reports are about: namespace/name, and ip:port.
func instances(proxies []v1.Proxy) map[string]instance {
	found := make(map[string]instance, 2*len(proxies))
	for _, p := range proxies {
		endpoint, _ := v1.ReachableOf(p) // also one that is held: who uses it still may tell
		of := instance{endpoint, p.Status.InstanceCreatedAt, p.Status.Phase == v1.PhaseRunning && p.Status.IP != ""}
		found[endpoint.Namespace+"/"+endpoint.Name] = of
		if of.runs {
			found[addressed(net.JoinHostPort(endpoint.IP, strconv.Itoa(endpoint.Port)))] = of
		}
	}
	return found
}

// addressed is host:port in one form.
func addressed(text string) string {
	if at, err := netip.ParseAddrPort(text); err == nil {
		return netip.AddrPortFrom(at.Addr().Unmap(), at.Port()).String()
	}
	return text
}

// reported finds the proxy that a report names. One that the token is not for is not there.
func (l *list) reported(ctx context.Context, name string) (instance, error) {
	at := name
	if _, rest, isURL := strings.Cut(name, "://"); isURL {
		at = rest
		if u, err := url.Parse(name); err == nil {
			at = u.Host // credentials are neither looked at nor shown
		}
		at = addressed(at)
	} else if !strings.Contains(name, "/") {
		at = addressed(name)
	}
	of, known := l.instances()[at]
	if !known || !access.Of(ctx).Sees(of.endpoint.Namespace, of.endpoint.Labels) {
		_, shown, hidden := strings.Cut(at, "@")
		if !hidden {
			shown = at
		}
		return instance{}, &problem{
			notFound, "proxy", shown, "is no proxy of the list: give its URL, host:port, or namespace/name",
		}
	}
	return of, nil
}

func (i instance) is(e v1.Endpoint) bool {
	return e.Namespace == i.endpoint.Namespace && e.Name == i.endpoint.Name
}

// egressed reports whether the instance is there, and leaves by the address that a
// client knows of; empty: it knows none.
func (i instance) egressed(ip string) (bool, error) {
	if ip == "" {
		return i.runs, nil
	}
	addr, err := netip.ParseAddr(ip)
	if err != nil {
		return false, &v1.FieldError{Field: "egressIP", Value: ip, Problem: "is not an IP address"}
	}
	is, err := netip.ParseAddr(egressOf(i.endpoint))
	return i.runs && err == nil && is.Unmap() == addr.Unmap(), nil
}

// egressOf is what a site sees of a proxy; its own address where no probe has told.
func egressOf(e v1.Endpoint) string { return cmp.Or(e.EgressIP, e.IP) }

func (i instance) report(kind v1.ReportKind, domain string, at time.Time) fleet.FeedbackReport {
	return fleet.FeedbackReport{
		Provider: i.endpoint.Provider, Namespace: i.endpoint.Namespace, Name: i.endpoint.Name, UID: i.endpoint.UID,
		MadeAt: i.madeAt, EgressIP: egressOf(i.endpoint), Domain: domain, Kind: kind, At: at.UTC(),
	}
}

// queryOf is the query with what a site bans left out, where that is known.
func (h handlers) queryOf(
	ctx context.Context, w wishes, limit int, shuffle bool, formats ...discovery.Format,
) (q query, err error) {
	if w.For != "" {
		if w.For, err = feedback.Domain("for", w.For); err != nil {
			return q, err
		}
		if !h.feedback.Known() {
			return q, &problem{kind: discoveryUnknown, detail: "which proxies are banned has not been loaded yet"}
		}
	}
	return h.queryKnown(ctx, w, limit, shuffle, formats...)
}

// queryKnown leaves out what is known to be banned.
func (h handlers) queryKnown(
	ctx context.Context, w wishes, limit int, shuffle bool, formats ...discovery.Format,
) (query, error) {
	q, err := queryOf(ctx, w, limit, shuffle, formats...)
	if err != nil || w.For == "" {
		return q, err
	}
	keeps, banned := q.keeps, h.feedback.For(w.For)
	q.keeps = func(e v1.Endpoint) bool { return keeps(e) && !banned(egressOf(e)) }
	return q, nil
}
