package codec_test

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/encoding/protojson"

	"go.temporal.io/api/common/v1"

	"github.com/egressfleet/egressfleet/internal/codec"
)

const (
	token = "t0ken-of-a-person"
	ui    = "https://ui.example"
	evil  = "https://evil.example"
)

func sum(token string) string {
	s := sha256.Sum256([]byte(token))
	return hex.EncodeToString(s[:])
}

// desk is an endpoint with one token and one origin.
type desk struct {
	http.Handler
	t      *testing.T
	ring   *codec.Ring
	tokens string
	log    bytes.Buffer
}

func newDesk(t *testing.T) *desk {
	t.Helper()
	d := &desk{
		t: t, ring: open(t, codec.Options{Dir: keyDir(t, map[string]string{"a": keyA})}),
		tokens: filepath.Join(t.TempDir(), "tokens"),
	}
	d.allow("# who may ask\n\n" + sum("another") + "\n" + sum(token) + " # a person\n")
	var err error
	d.Handler, err = d.ring.Endpoint(codec.EndpointOptions{
		TokensFile: d.tokens, Origins: []string{ui}, Logger: slog.New(slog.NewTextHandler(&d.log, nil)),
	})
	require.NoError(t, err)
	return d
}

func (d *desk) allow(text string) { require.NoError(d.t, os.WriteFile(d.tokens, []byte(text), 0o600)) }

// ask sends an encrypted payload to be decrypted, as a person with the token does.
func (d *desk) ask(change func(*http.Request)) *httptest.ResponseRecorder {
	d.t.Helper()
	r := httptest.NewRequest(http.MethodPost, "https://api.example/codec/decode",
		strings.NewReader(d.body(encode(d.t, d.ring))))
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Authorization", "Bearer "+token)
	r.Header.Set("X-Namespace", "default")
	change(r)
	w := httptest.NewRecorder()
	d.ServeHTTP(w, r)
	require.NotContains(d.t, d.log.String(), token)
	return w
}

func (d *desk) body(p *common.Payload) string {
	raw, err := protojson.Marshal(&common.Payloads{Payloads: []*common.Payload{p}})
	require.NoError(d.t, err)
	return string(raw)
}

func payload(t *testing.T, w *httptest.ResponseRecorder) *common.Payload {
	t.Helper()
	require.Equal(t, http.StatusOK, w.Code, w.Body.String())
	var got common.Payloads
	require.NoError(t, protojson.Unmarshal(w.Body.Bytes(), &got))
	require.Len(t, got.GetPayloads(), 1)
	return got.GetPayloads()[0]
}

func TestATokenReadsAndWrites(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	require.Equal(t, plain().GetData(), payload(t, d.ask(func(*http.Request) {})).GetData())
	encrypted := payload(t, d.ask(func(r *http.Request) {
		r.URL.Path = "/codec/encode"
		fresh := httptest.NewRequest(http.MethodPost, "/", strings.NewReader(d.body(plain())))
		r.Body, r.ContentLength = fresh.Body, fresh.ContentLength
	}))
	got, err := decode(d.ring, encrypted)
	require.NoError(t, err)
	require.Equal(t, plain().GetData(), got.GetData())
	require.True(t, codec.IsEncrypted(encrypted))
}

func TestNothingIsDecryptedForAStranger(t *testing.T) {
	t.Parallel()
	header := func(key, value string) func(*http.Request) {
		return func(r *http.Request) { r.Header.Set(key, value) }
	}
	for name, tt := range map[string]struct {
		change func(*http.Request)
		status int
	}{
		"no token":              {func(r *http.Request) { r.Header.Del("Authorization") }, http.StatusUnauthorized},
		"an empty token":        {header("Authorization", "Bearer "), http.StatusUnauthorized},
		"another token":         {header("Authorization", "Bearer nonsense"), http.StatusUnauthorized},
		"the hash of a token":   {header("Authorization", "Bearer "+sum(token)), http.StatusUnauthorized},
		"another scheme":        {header("Authorization", "Basic "+token), http.StatusUnauthorized},
		"a foreign page":        {header("Origin", evil), http.StatusForbidden},
		"a page without a name": {header("Origin", "null"), http.StatusForbidden},
		"a foreign site":        {header("Sec-Fetch-Site", "cross-site"), http.StatusForbidden},
		"a form of any website": {header("Content-Type", "text/plain"), http.StatusUnsupportedMediaType},
		"no content type":       {func(r *http.Request) { r.Header.Del("Content-Type") }, http.StatusUnsupportedMediaType},
		"a read by address":     {func(r *http.Request) { r.Method = http.MethodGet }, http.StatusMethodNotAllowed},
		"a path below":          {func(r *http.Request) { r.URL.Path = "/codec/x/decode" }, http.StatusNotFound},
		"a body without an end": {func(r *http.Request) {
			fresh := httptest.NewRequest(http.MethodPost, "/", strings.NewReader(`{"payloads": "`+strings.Repeat("a", 9<<20)))
			r.Body, r.ContentLength = fresh.Body, fresh.ContentLength
		}, http.StatusBadRequest},
	} {
		w := newDesk(t).ask(tt.change)
		require.Equal(t, tt.status, w.Code, name)
		require.NotContains(t, w.Body.String(), "payloads", name)
		if tt.status == http.StatusBadRequest {
			require.Contains(t, w.Body.String(), "too large", name)
		}
		if tt.status == http.StatusUnauthorized {
			require.Contains(t, w.Header().Get("WWW-Authenticate"), "Bearer", name)
		}
	}
}

func TestAPageOfTheWebUIMayAskAndAForeignOneMayNot(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	preflight := func(origin string) http.Header {
		return d.ask(func(r *http.Request) {
			r.Method = http.MethodOptions
			r.Header.Del("Authorization")
			r.Header.Set("Origin", origin)
			r.Header.Set("Access-Control-Request-Method", http.MethodPost)
			r.Header.Set("Access-Control-Request-Headers", "authorization,content-type,x-namespace")
		}).Header()
	}
	mine := preflight(ui)
	require.Equal(t, ui, mine.Get("Access-Control-Allow-Origin"))
	require.Equal(t, "true", mine.Get("Access-Control-Allow-Credentials"))
	require.Contains(t, mine.Get("Access-Control-Allow-Headers"), "x-namespace")
	for _, origin := range []string{evil, "null", "http://ui.example", ui + ".evil.example"} {
		require.Empty(t, preflight(origin).Get("Access-Control-Allow-Origin"), origin)
	}
	w := d.ask(func(r *http.Request) {
		r.Header.Set("Origin", ui)
		r.Header.Set("Sec-Fetch-Site", "same-site")
	})
	require.Equal(t, ui, w.Header().Get("Access-Control-Allow-Origin"))
	require.Equal(t, plain().GetData(), payload(t, w).GetData())
}

func (d *desk) login(token, origin string) *httptest.ResponseRecorder {
	r := httptest.NewRequest(http.MethodPost, "https://api.example/codec/login",
		strings.NewReader(url.Values{"token": {token}}.Encode()))
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	r.Header.Set("Origin", origin)
	w := httptest.NewRecorder()
	d.ServeHTTP(w, r)
	return w
}

func TestABrowserTradesATokenForACookie(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	const own = "https://api.example"
	cookies := d.login(token, own).Result().Cookies()
	require.Len(t, cookies, 1)
	c := cookies[0]
	require.True(t, c.HttpOnly && c.Secure)
	require.Equal(t, http.SameSiteStrictMode, c.SameSite)
	require.Equal(t, "/codec", c.Path)
	with := func(r *http.Request) {
		r.Header.Set("Authorization", "Bearer of-the-web-ui-itself")
		r.AddCookie(c)
		r.Header.Set("Origin", ui)
	}
	require.Equal(t, plain().GetData(), payload(t, d.ask(with)).GetData())
	require.Equal(t, http.StatusForbidden, d.ask(func(r *http.Request) {
		with(r)
		r.Header.Set("Origin", evil)
	}).Code, "a cookie is of no use to another page")

	for _, refused := range []*httptest.ResponseRecorder{d.login("wrong", own), d.login("", own), d.login(token, evil)} {
		require.Contains(t, []int{http.StatusUnauthorized, http.StatusForbidden}, refused.Code)
		require.Empty(t, refused.Result().Cookies())
	}
	page := httptest.NewRecorder()
	d.ServeHTTP(page, httptest.NewRequest(http.MethodGet, own+"/codec/login", nil))
	require.Equal(t, http.StatusOK, page.Code)
	require.Contains(t, page.Body.String(), `action="/codec/login"`)
}

func TestATokenThatIsTakenOutIsRefusedAtOnce(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	d.allow(sum("another") + "\n")
	require.Equal(t, http.StatusUnauthorized, d.ask(func(*http.Request) {}).Code)
	d.allow(sum("") + "\n") // of nothing at all
	require.Equal(t, http.StatusUnauthorized, d.ask(func(r *http.Request) { r.Header.Del("Authorization") }).Code)
	d.allow("nonsense\n")
	require.Equal(t, http.StatusServiceUnavailable, d.ask(func(*http.Request) {}).Code)
	require.Contains(t, d.log.String(), d.tokens+":1: is not a SHA-256")
}

func TestAnEndpointWithoutTokensIsRefused(t *testing.T) {
	t.Parallel()
	r := open(t, codec.Options{Dir: keyDir(t, map[string]string{"a": keyA})})
	file := filepath.Join(t.TempDir(), "tokens")
	for want, text := range map[string]string{
		"holds no SHA-256": "# nobody\n",
		":2: is not a SHA-256 of 64 hexadecimal digits": "\n" + token + "\n",
	} {
		require.NoError(t, os.WriteFile(file, []byte(text), 0o600))
		_, err := r.Endpoint(codec.EndpointOptions{TokensFile: file})
		require.ErrorContains(t, err, "codec.tokensFile: "+file)
		require.ErrorContains(t, err, want)
		require.NotContains(t, err.Error(), token)
	}
	_, err := r.Endpoint(codec.EndpointOptions{TokensFile: file + "-nowhere"})
	require.ErrorContains(t, err, "codec.tokensFile: ")
}

func TestAnUnknownKeyIsNamedToWhoMayAsk(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	foreign := encode(t, open(t, codec.Options{Dir: keyDir(t, map[string]string{"lost": keyB})}))
	w := d.ask(func(r *http.Request) {
		fresh := httptest.NewRequest(http.MethodPost, "/", strings.NewReader(d.body(foreign)))
		r.Body, r.ContentLength = fresh.Body, fresh.ContentLength
	})
	require.Equal(t, http.StatusBadRequest, w.Code)
	require.Contains(t, w.Body.String(), `"lost"`)
}
