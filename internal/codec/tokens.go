package codec

import (
	"bufio"
	"bytes"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/hex"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"os"
	"strings"
	"time"
)

const (
	loginPath  = PathPrefix + "/login"
	cookieName = "egressfleet_codec"
	// loggedIn is how long a browser keeps its token.
	loggedIn = 12 * time.Hour
	// formBytes bounds what a login sends.
	formBytes = 4 << 10
)

// tokens is the file of those who may ask, read at every request: taking a line out
// takes effect at once.
type tokens struct {
	file string
	log  *slog.Logger
}

// read returns the SHA-256 of every token. A line holds one in hexadecimal; empty lines
// and what follows a # mean nothing. Errors name the file and the line.
func (t tokens) read() (sums [][]byte, err error) {
	text, err := os.ReadFile(t.file)
	if err != nil {
		return nil, fmt.Errorf("codec.tokensFile: %w", err)
	}
	lines := bufio.NewScanner(bytes.NewReader(text))
	for n := 1; lines.Scan(); n++ {
		line, _, _ := strings.Cut(lines.Text(), "#")
		if line = strings.TrimSpace(line); line == "" {
			continue
		}
		sum, err := hex.DecodeString(line)
		if err != nil || len(sum) != sha256.Size {
			return nil, fmt.Errorf("codec.tokensFile: %s:%d: is not a SHA-256 of %d hexadecimal digits",
				t.file, n, 2*sha256.Size)
		}
		sums = append(sums, sum)
	}
	if err := lines.Err(); err != nil {
		return nil, fmt.Errorf("codec.tokensFile: %s: %w", t.file, err)
	}
	if len(sums) == 0 {
		return nil, fmt.Errorf("codec.tokensFile: %s: holds no SHA-256 of a token", t.file)
	}
	return sums, nil
}

var errNotAllowed = errors.New("no allowed token")

// allow returns errNotAllowed, or why nobody can be told from a stranger. It compares
// with every line, so that the time it takes says nothing.
func (t tokens) allow(token string) error {
	sums, err := t.read()
	if err != nil {
		return err
	}
	sum, found := sha256.Sum256([]byte(token)), 0
	for _, allowed := range sums {
		found |= subtle.ConstantTimeCompare(sum[:], allowed)
	}
	if found == 0 || token == "" {
		return errNotAllowed
	}
	return nil
}

// require lets pass who shows a token in the Authorization header, or a browser's cookie.
func (t tokens) require(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var err error
		for _, token := range shown(r) {
			if err = t.allow(token); err == nil {
				next.ServeHTTP(w, r)
				return
			}
		}
		t.refuse(w, err)
	})
}

func (t tokens) refuse(w http.ResponseWriter, err error) {
	if !errors.Is(err, errNotAllowed) {
		t.log.Error("the codec endpoint refuses everybody", slog.String("error", err.Error()))
		http.Error(w, "the tokens cannot be read; the log says why", http.StatusServiceUnavailable)
		return
	}
	w.Header().Set("WWW-Authenticate", `Bearer realm="egressfleet codec"`)
	http.Error(w, `an allowed token is required: "Authorization: Bearer TOKEN", or log in at `+loginPath,
		http.StatusUnauthorized)
}

// shown are the tokens of a request, at least one. A Web UI may send a token of its own,
// which is none of ours, beside the cookie.
func shown(r *http.Request) []string {
	scheme, token, _ := strings.Cut(r.Header.Get("Authorization"), " ")
	if !strings.EqualFold(scheme, "Bearer") {
		token = ""
	}
	all := []string{token}
	if cookie, err := r.Cookie(cookieName); err == nil {
		all = append(all, cookie.Value)
	}
	return all
}

const loginPage = `<!doctype html>
<html lang="en"><title>egressfleet codec</title>
<h1>Read encrypted payloads</h1>
<form method="post" action="` + loginPath + `">
<p><label>Token <input type="password" name="token" autocomplete="current-password" required autofocus></label>
<button>Log in</button></p>
<p>Then reload the Temporal Web UI. This browser stays logged in for twelve hours.</p>
</form></html>
`

func showLogin(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	// Nobody frames the form, and nothing foreign is loaded into it.
	w.Header().Set("Content-Security-Policy", "default-src 'none'; form-action 'self'; frame-ancestors 'none'")
	_, _ = w.Write([]byte(loginPage))
}

// login keeps an allowed token in the browser, for pages of this site alone and out of
// reach of their scripts.
func (t tokens) login(w http.ResponseWriter, r *http.Request) {
	r.Body = http.MaxBytesReader(w, r.Body, formBytes)
	token := r.PostFormValue("token")
	if err := t.allow(token); err != nil {
		t.refuse(w, err)
		return
	}
	http.SetCookie(w, &http.Cookie{
		Name: cookieName, Value: token, Path: PathPrefix, MaxAge: int(loggedIn.Seconds()),
		HttpOnly: true, Secure: true, SameSite: http.SameSiteStrictMode,
	})
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	_, _ = w.Write([]byte("Logged in. Reload the Temporal Web UI.\n"))
}
