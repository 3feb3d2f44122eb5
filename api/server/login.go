package server

import (
	_ "embed"
	"html/template"
	"net/http"
	"time"

	"github.com/labstack/echo/v4"
	"golang.org/x/time/rate"
)

const (
	loginPath = "/login"
	// loggedIn is how long a session lasts.
	loggedIn = 12 * time.Hour
	// formBytes bounds what a login sends.
	formBytes = 4 << 10
	// Guesses a second that all browsers together may make; a token holds far more bits.
	guessesPerSecond, guessesAtOnce = 5, 20
)

//go:embed login.html
var loginText string

var loginPage = template.Must(template.New("login").Parse(loginText))

// login is where a browser trades a token for a session.
type login struct {
	keys    Keys
	clock   Clock
	guesses *rate.Limiter
}

func newLogin(keys Keys, clock Clock) *login {
	return &login{keys, clock, rate.NewLimiter(guessesPerSecond, guessesAtOnce)}
}

// show answers with the form. It is a 401, since nothing is told without a token.
func (l *login) show(c echo.Context) error { return l.form(c, http.StatusUnauthorized, "") }

// enter gives the browser a session for a known token, for pages of this site alone and
// out of reach of their scripts. The token itself stays with whoever typed it.
func (l *login) enter(c echo.Context) error {
	if err := strangers.Check(c.Request()); err != nil {
		return &problem{kind: forbidden, detail: "the page of another site sent this form"}
	}
	if !l.guesses.AllowN(l.clock.Now(), 1) {
		c.Response().Header().Set(echo.HeaderRetryAfter, "1")
		return l.form(c, http.StatusTooManyRequests, "Too many try at once. Try again in a second.")
	}
	r := c.Request()
	r.Body = http.MaxBytesReader(c.Response().Writer, r.Body, formBytes)
	token := r.PostFormValue("token")
	grant := l.keys.Find(token)
	if grant == nil {
		return l.form(c, http.StatusUnauthorized, "This is not a known token.")
	}
	c.Set(grantKey, grant)
	c.SetCookie(&http.Cookie{
		Name: sessionCookie, Value: l.keys.Session(token, l.clock.Now().Add(loggedIn)), Path: "/",
		MaxAge:   int(loggedIn.Seconds()),
		HttpOnly: true, Secure: true, SameSite: http.SameSiteStrictMode,
	})
	return c.Redirect(http.StatusSeeOther, wantedPage(c))
}

// leave makes the browser forget its session.
func (l *login) leave(c echo.Context) error {
	if err := strangers.Check(c.Request()); err != nil {
		return &problem{kind: forbidden, detail: "the page of another site sent this form"}
	}
	c.SetCookie(&http.Cookie{
		Name: sessionCookie, Path: "/", MaxAge: -1, HttpOnly: true, Secure: true, SameSite: http.SameSiteStrictMode,
	})
	return c.Redirect(http.StatusSeeOther, loginPath)
}

func (l *login) form(c echo.Context, status int, problem string) error {
	header := c.Response().Header()
	header.Set(echo.HeaderContentType, echo.MIMETextHTMLCharsetUTF8)
	// Nobody frames the form, and nothing foreign is loaded into it.
	header.Set(echo.HeaderContentSecurityPolicy,
		"default-src 'none'; style-src 'unsafe-inline'; form-action 'self'; frame-ancestors 'none'; base-uri 'none'")
	if status == http.StatusUnauthorized {
		header.Set(echo.HeaderWWWAuthenticate, `Bearer realm="egressfleet"`)
	}
	c.Response().WriteHeader(status)
	return loginPage.Execute(c.Response(), map[string]any{
		"Problem": problem, "Hours": int(loggedIn.Hours()), "Next": wantedPage(c), "Again": fromElsewhere(c.Request()),
	})
}
