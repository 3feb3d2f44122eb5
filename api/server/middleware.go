package server

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http"
	"runtime/debug"
	"strconv"
	"strings"
	"time"

	"github.com/labstack/echo/v4"

	v1 "github.com/egressfleet/egressfleet/api/v1"
)

const (
	problemJSON = "application/problem+json"
	// In an echo.Context: the error that only the log tells, and the problem that the
	// client is told.
	faultKey   = "egressfleet.fault"
	problemKey = "egressfleet.problem"
)

// logRequest writes one line per request: never a body, never a query, and of a
// problem its kind and field, but never the value.
func (s *Server) logRequest(next echo.HandlerFunc) echo.HandlerFunc {
	return func(c echo.Context) error {
		began := s.clock.Now()
		err := next(c)
		method, status := c.Request().Method, c.Response().Status
		level := levelOf(c, status)
		if !s.log.Enabled(c.Request().Context(), level) {
			s.audit(c.Request().Context(), c)
			return err
		}
		attrs := []slog.Attr{
			slog.String("method", cut(method, shownValue)), slog.String("route", c.Path()),
			slog.Int("status", status), slog.Duration("duration", s.clock.Now().Sub(began)),
		}
		attrs = append(attrs, subject(c)...)
		if told, refused := c.Get(problemKey).(*problem); refused {
			attrs = append(attrs, slog.String("problem", told.kind.name))
			if told.field != "" {
				attrs = append(attrs, slog.String("field", cut(told.field, shownField)))
			}
		}
		if fault, failed := c.Get(faultKey).(error); failed {
			attrs = append(attrs, slog.String("error", fault.Error()))
		}
		s.log.LogAttrs(c.Request().Context(), level, "request", attrs...)
		s.audit(c.Request().Context(), c)
		return err
	}
}

// subject is the Proxy of the path, as far as it is named as Proxies are: anything
// else is a value like those of a body.
func subject(c echo.Context) (attrs []slog.Attr) {
	for _, param := range []string{"namespace", "name"} {
		if value := c.Param(param); v1.IsName(value) {
			attrs = append(attrs, slog.String(param, value))
		}
	}
	return attrs
}

// levelOf keeps what clients and supervisors ask all the time out of the usual log.
func levelOf(c echo.Context, status int) slog.Level {
	switch {
	case status == http.StatusServiceUnavailable:
		return slog.LevelWarn
	case status >= http.StatusInternalServerError:
		return slog.LevelError
	case (c.Request().Method == http.MethodGet || c.Path() == reportPath) && status < http.StatusBadRequest:
		return slog.LevelDebug
	default:
		return slog.LevelInfo
	}
}

// bound ends the context of a request when its time is over, and the time of its answer
// with it. One that waits has that time besides; one that is told of changes has no end.
func (s *Server) bound(next echo.HandlerFunc) echo.HandlerFunc {
	return func(c echo.Context) error {
		if c.Path() == eventsPath {
			return next(c)
		}
		patience, _ := waitOf(c.QueryParam(wait)) // a wrong one is refused later
		if patience == 0 && c.Path() == discoveryPath {
			return next(c) // answered from memory: there is nothing to wait for
		}
		if patience > 0 {
			until := time.Now().Add(patience + s.limits.Write)
			_ = http.NewResponseController(c.Response()).SetWriteDeadline(until) // httptest has none
		}
		ctx, cancel := context.WithTimeout(c.Request().Context(), s.limits.Handler+patience)
		defer cancel()
		c.SetRequest(c.Request().WithContext(ctx))
		return next(c)
	}
}

// setHeaders sets what holds for every answer that does not say otherwise.
func setHeaders(next echo.HandlerFunc) echo.HandlerFunc {
	return func(c echo.Context) error {
		header := c.Response().Header()
		setUsual(header)
		c.Response().Before(func() { allowHead(header) })
		return next(c)
	}
}

func setUsual(header http.Header) {
	header.Set(echo.HeaderXContentTypeOptions, "nosniff")
	header.Set(echo.HeaderCacheControl, "no-store")
}

// answerErrors turns every error, and every panic, into a problem document.
func answerErrors(next echo.HandlerFunc) echo.HandlerFunc {
	return func(c echo.Context) (err error) {
		defer func() {
			switch panicked := recover(); {
			case panicked == http.ErrAbortHandler: //nolint:errorlint // net/http's own convention
				panic(panicked)
			case panicked != nil:
				err = answer(c, fmt.Errorf("panic: %v\n%s", panicked, debug.Stack()))
			}
		}()
		if failed := next(c); failed != nil {
			return answer(c, failed)
		}
		return nil
	}
}

// answer writes the problem that an error is. What the client is not told is kept
// for the log.
func answer(c echo.Context, failed error) error {
	problem := tell(c, failed)
	if c.Response().Committed {
		return nil // the client went away, or has half an answer: there is no taking it back
	}
	c.Response().Header().Set(echo.HeaderContentType, problemJSON)
	c.Response().WriteHeader(problem.kind.status)
	return json.NewEncoder(c.Response()).Encode(problem.document(c.Request()))
}

// tell keeps for the log what an error is, and sets the headers of its answer.
func tell(c echo.Context, failed error) *problem {
	header := c.Response().Header()
	allowHead(header)
	problem := problemOf(c, failed)
	c.Set(problemKey, problem)
	if problem.kind.status >= http.StatusInternalServerError {
		c.Set(faultKey, failed)
	}
	header.Set(echo.HeaderCacheControl, "no-store")
	switch problem.kind.status {
	case http.StatusTooManyRequests:
		if header.Get(echo.HeaderRetryAfter) != "" { // who counts knows better
			break
		}
		fallthrough
	case http.StatusServiceUnavailable:
		header.Set(echo.HeaderRetryAfter, strconv.Itoa(int(retryAfter.Seconds())))
	case http.StatusUnauthorized:
		header.Set(echo.HeaderWWWAuthenticate, `Bearer realm="egressfleet"`)
	}
	return problem
}

// allowHead adds what Handler allows beyond echo's routes.
func allowHead(header http.Header) {
	allow := header.Get(echo.HeaderAllow)
	if strings.Contains(allow, http.MethodGet) && !strings.Contains(allow, http.MethodHead) {
		header.Set(echo.HeaderAllow, allow+", "+http.MethodHead)
	}
}
