package server

import (
	"bytes"
	"context"
	"crypto/rand"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/labstack/echo/v4"

	"github.com/egressfleet/egressfleet/api/page"
	v1 "github.com/egressfleet/egressfleet/api/v1"
)

// view is a page that can be written.
type view interface{ Write(w io.Writer) error }

// write answers with a page. It is made whole first: half a page would be a good one.
func (p *pages) write(c echo.Context, status int, v view) error {
	var out bytes.Buffer
	if err := v.Write(&out); err != nil {
		return err
	}
	header := c.Response().Header()
	header.Set(echo.HeaderContentSecurityPolicy, page.ContentSecurityPolicy)
	header.Set("Cross-Origin-Opener-Policy", "same-origin")
	header.Set("Cross-Origin-Resource-Policy", "same-origin")
	// Without a referrer, a browser would not say either that a form is of this site.
	header.Set(echo.HeaderReferrerPolicy, "same-origin")
	return c.HTMLBlob(status, out.Bytes())
}

// forPeople turns the problems of pages into pages.
func (p *pages) forPeople(next echo.HandlerFunc) echo.HandlerFunc {
	return func(c echo.Context) error {
		failed := next(c)
		if failed == nil || !isPage(c.Path()) || c.Response().Committed {
			return failed
		}
		told := tell(c, failed)
		if told.kind == unauthenticated && p.desk != nil {
			c.Response().Header().Set("HX-Refresh", "true") // a page that is open shows the form, too
			return p.desk.form(c, http.StatusUnauthorized, "")
		}
		return p.write(c, told.kind.status, page.NewSorry(p.viewer(c), told.kind.status, told.kind.title, told.sentence()))
	}
}

// fromAPage refuses a form whose browser does not say where it is from. Every one says so
// of a form that it sends; a program asks the operations of the contract.
func fromAPage(next echo.HandlerFunc) echo.HandlerFunc {
	return func(c echo.Context) error {
		header := c.Request().Header
		if header.Get("Sec-Fetch-Site") == "" && header.Get(echo.HeaderOrigin) == "" {
			return &problem{kind: forbidden, detail: "this is a form of the page, and nothing says that the page sent it"}
		}
		if err := strangers.Check(c.Request()); err != nil {
			return &problem{kind: forbidden, detail: "the page of another site sent this form"}
		}
		return next(c)
	}
}

// ofThisMachine refuses what a page of another site has a browser ask for where no token
// is required. A name that is not this machine's is one that somebody may have pointed
// here; an address cannot be.
func ofThisMachine(r *http.Request) error {
	if !isLocal(r.Host) {
		return &problem{
			forbidden, "Host", r.Host,
			"is not this machine's: without tokens the API answers to localhost and to addresses only",
		}
	}
	if err := strangers.Check(r); err != nil {
		return &problem{kind: forbidden, detail: "the page of another site sent this request"}
	}
	return nil
}

// isLocal reports whether a Host is an address, or a name that means this machine
// everywhere.
func isLocal(host string) bool {
	name, _, err := net.SplitHostPort(host)
	if err != nil {
		name = host
	}
	name = strings.ToLower(strings.TrimSuffix(strings.Trim(name, "[]"), "."))
	return name == "localhost" || strings.HasSuffix(name, ".localhost") || net.ParseIP(name) != nil
}

// wantedPage is where a login leads: the page that was asked for, or that of the fleet.
func wantedPage(c echo.Context) string {
	r := c.Request()
	next := r.URL.RequestURI()
	if c.Path() == loginPath {
		next = r.PostFormValue("next")
	}
	// Any other path could be another site's: //evil.test, or /\\evil.test.
	if strings.HasPrefix(next, fleetPath+"?") || strings.HasPrefix(next, "/proxies/") {
		return next
	}
	return fleetPath
}

// fromElsewhere reports whether another site led here, for which a browser leaves its
// session out. It asks again by itself, and then from here.
func fromElsewhere(r *http.Request) bool {
	return r.Method == http.MethodGet && r.Header.Get("Sec-Fetch-Site") == "cross-site"
}

func newKey() string { return rand.Text() }

const (
	// collectionFresh is how long an answer about the collection of orphans is given again.
	collectionFresh = 10 * time.Second
	// collectionTimeout bounds the question: a page does not depend on it.
	collectionTimeout = 2 * time.Second
)

// collections remembers the last collection of orphans.
type collections struct {
	fleet Fleet
	clock Clock

	mu    sync.Mutex
	asked time.Time // zero: never
	is    v1.Collection
	err   error
}

func (c *collections) last(ctx context.Context) (v1.Collection, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if now := c.clock.Now(); c.asked.IsZero() || now.Sub(c.asked) >= collectionFresh {
		// A client that goes away must not leave its error for the next one.
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), collectionTimeout)
		defer cancel()
		c.is, c.err = c.fleet.LastCollection(ctx)
		c.asked = now
	}
	return c.is, c.err
}
