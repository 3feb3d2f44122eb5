package server

import (
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/labstack/echo/v4"

	"github.com/egressfleet/egressfleet/api/access"
)

const (
	// sessionCookie is what a browser has traded a token for.
	sessionCookie = "egressfleet_session"
	// tokenParameter is a token for discovery where a client can send no header: a PAC
	// file's address, or a browser's event source.
	tokenParameter = "token"
	grantKey       = "egressfleet.grant"
	// sessionKey is how long the session of a stream goes on.
	sessionKey = "egressfleet.session"
)

// Keys find what a token may do; *access.File has it.
type Keys interface {
	// Find returns the grant of a token, or nil.
	Find(token string) *access.Grant
	// Session returns what a browser may keep instead of a token that is known.
	Session(token string, until time.Time) string
	// Resume returns the grant of a session and when that ends; nil: it has ended, or is none.
	Resume(session string, now time.Time) (*access.Grant, time.Time)
	// Look ends the grants that are over. It is called every other second.
	Look()
}

// keysPeriod is between two looks at the keys while nobody asks.
const keysPeriod = 2 * time.Second

// followKeys ends what is told to tokens that are none any more.
func (s *Server) followKeys(ctx context.Context) {
	ticks, stop := s.clock.Ticker(keysPeriod)
	defer stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticks:
			s.keys.Look()
		}
	}
}

// openRoutes are answered without a token: a supervisor has none, and who logs in shows
// it in a form.
var openRoutes = map[string]bool{"/healthz": true, "/readyz": true, loginPath: true}

// authenticate lets in who shows a token, and puts what it may do into the context.
// Nothing else is answered without one, not even that there is nothing.
func (s *Server) authenticate(next echo.HandlerFunc) echo.HandlerFunc {
	return func(c echo.Context) error {
		if openRoutes[c.Path()] || strings.HasPrefix(c.Path(), "/codec/") { // which has tokens of its own
			return next(c)
		}
		grant := access.Everything() // one for each request: places are counted by grant
		if s.keys != nil {
			var err error
			if grant, err = s.admit(c); err != nil {
				return err
			}
		} else if err := ofThisMachine(c.Request()); err != nil && c.Path() != "" { // where there is something
			return err
		}
		c.Set(grantKey, grant)
		ctx := access.With(c.Request().Context(), grant)
		if lasts, ends := c.Get(sessionKey).(time.Duration); ends {
			var cancel context.CancelFunc
			ctx, cancel = context.WithTimeout(ctx, lasts)
			defer cancel()
		}
		c.SetRequest(c.Request().WithContext(ctx))
		return next(c)
	}
}

// admit returns the grant of the token that a request shows.
func (s *Server) admit(c echo.Context) (*access.Grant, error) {
	token, from, err := shownToken(c)
	if err != nil {
		return nil, err
	}
	if token == "" {
		return nil, &problem{kind: unauthenticated, detail: "a token is required: send it as Authorization: Bearer TOKEN"}
	}
	grant := s.find(c, token, from)
	switch {
	case grant == nil && from == fromCookie:
		return nil, &problem{kind: unauthenticated, detail: "the session is over, or none of this API: log in again"}
	case grant == nil:
		return nil, &problem{kind: unauthenticated, detail: "the token in the " + from + " is not a known one"}
	case from == fromQuery && !grant.Only(access.ScopeDiscovery):
		return nil, &problem{
			kind:   forbidden,
			detail: "a token in the query may have the scope discovery only, because addresses are kept and shown",
		}
	}
	c.Set(grantKey, grant)
	if from == fromCookie {
		if err := strangers.Check(c.Request()); err != nil {
			return nil, &problem{kind: forbidden, detail: "the page of another site asked with this browser's session"}
		}
	}
	if wait := grant.Take(s.clock.Now()); wait > 0 {
		c.Response().Header().Set(echo.HeaderRetryAfter, strconv.Itoa(retrySeconds(wait)))
		return nil, &problem{
			kind: tooManyRequests, detail: "the token " + grant.Name + " has used up its requests; wait as Retry-After says",
		}
	}
	return grant, nil
}

// find returns the grant of what was shown, or nil.
func (s *Server) find(c echo.Context, shown, from string) *access.Grant {
	if from != fromCookie {
		return s.keys.Find(shown)
	}
	now := s.clock.Now()
	grant, until := s.keys.Resume(shown, now)
	if grant != nil && c.Path() == eventsPath { // which ends by itself never
		c.Set(sessionKey, until.Sub(now))
	}
	return grant
}

// strangers keeps the pages of other sites from using a browser's session.
var strangers = http.NewCrossOriginProtection()

// Where a token was shown.
const (
	fromHeader = "Authorization header"
	fromQuery  = "query"
	fromCookie = "session"
)

// shownToken is the token of a request and where it was found. A header counts before
// everything else: who sends one means it.
func shownToken(c echo.Context) (token, from string, err error) {
	r := c.Request()
	if header := r.Header.Values(echo.HeaderAuthorization); len(header) > 0 {
		scheme, token, _ := strings.Cut(header[0], " ")
		if len(header) > 1 || !strings.EqualFold(scheme, "Bearer") {
			return "", "", &problem{kind: unauthenticated, detail: "the Authorization header is not one Bearer TOKEN"}
		}
		return strings.TrimSpace(token), fromHeader, nil
	}
	if token := r.URL.Query().Get(tokenParameter); token != "" && strings.HasPrefix(c.Path(), "/v1/discovery") {
		return token, fromQuery, nil
	}
	if cookie, err := r.Cookie(sessionCookie); err == nil {
		return cookie.Value, fromCookie, nil
	}
	return "", "", nil
}

// allow refuses who has not the scope of an operation, or is not for its namespace.
func allow(scope access.Scope) echo.MiddlewareFunc {
	return func(next echo.HandlerFunc) echo.HandlerFunc {
		return func(c echo.Context) error {
			grant := access.Of(c.Request().Context())
			if !grant.May(scope) {
				return &problem{
					kind:   forbidden,
					detail: fmt.Sprintf("the token %s has not the scope %s, which this needs", grant.Name, scope),
				}
			}
			if namespace := c.Param("namespace"); namespace != "" && !grant.Enters(namespace) {
				return &problem{forbidden, "metadata.namespace", namespace, "is not one of the token " + grant.Name}
			}
			return next(c)
		}
	}
}

// audit writes one line for each request that would change something: who, what, and
// what came of it. A report changes nothing by itself; what it leads to has its own line.
func (s *Server) audit(ctx context.Context, c echo.Context) {
	if method := c.Request().Method; method == http.MethodGet || method == http.MethodHead || c.Path() == reportPath {
		return
	}
	who := "nobody"
	if grant, known := c.Get(grantKey).(*access.Grant); known {
		who = grant.Name
	}
	attrs := append([]slog.Attr{
		slog.String("who", who), slog.String("method", cut(c.Request().Method, shownValue)), slog.String("route", c.Path()),
	}, subject(c)...)
	attrs = append(attrs, slog.Int("status", c.Response().Status))
	if told, refused := c.Get(problemKey).(*problem); refused {
		attrs = append(attrs, slog.String("problem", told.kind.name))
	}
	s.log.LogAttrs(ctx, slog.LevelInfo, "audit", attrs...)
}

// retrySeconds is a time to wait as the header Retry-After has it.
func retrySeconds(wait time.Duration) int { return max(1, int((wait + time.Second - 1).Seconds())) }
