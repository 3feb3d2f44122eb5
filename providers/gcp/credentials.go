package gcp

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"net/http"
	"os"
	"slices"
	"sync"

	"cloud.google.com/go/auth"
	"cloud.google.com/go/auth/credentials"

	"github.com/egressfleet/egressfleet/providers"
)

// scope is what a token is asked for; roles decide what may be done with it.
const scope = "https://www.googleapis.com/auth/cloud-platform"

// largestKey is more than any credential file has.
const largestKey = 64 << 10

// tokens finds the credential of each request: at the call, so that a rotated file is
// taken at once, and one that comes late is found.
type tokens struct {
	file   string
	none   bool
	client *http.Client // asks for tokens
	mu     sync.Mutex
	read   [sha256.Size]byte // of the file that made is of
	made   *auth.Credentials
}

// noCredential is why a request was not sent.
type noCredential struct{ error }

func (n *noCredential) Unwrap() error { return n.error }

func newTokens(s settings, wire http.RoundTripper) *tokens {
	return &tokens{
		file: s.CredentialsFile, none: s.InsecureNoAuthentication,
		client: &http.Client{Transport: wire, Timeout: s.callTime},
	}
}

// authorize returns the request with the credential in its header. Its errors hold
// nothing of the credential, nor of what a token was asked for with.
func (t *tokens) authorize(r *http.Request) (*http.Request, error) {
	if t.none {
		return r, nil
	}
	ctx := r.Context()
	creds, err := t.current(ctx)
	if err != nil {
		return nil, &noCredential{err}
	}
	token, err := creds.Token(ctx)
	if err != nil {
		return nil, refusedToken(ctx, err)
	}
	r = r.Clone(ctx)
	r.Header.Set("Authorization", token.Type+" "+token.Value)
	if project, err := creds.QuotaProjectID(ctx); err == nil && project != "" {
		r.Header.Set("X-Goog-User-Project", project)
	}
	return r, nil
}

// current returns the credential of now. Content that makes no sense does not take the
// place of one that did: the provider goes on, as the registry means it to.
func (t *tokens) current(ctx context.Context) (*auth.Credentials, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.file == "" {
		return t.byDefault()
	}
	content, err := readKey(t.file)
	if err != nil {
		return nil, err
	}
	sum := sha256.Sum256(content)
	if t.made != nil && sum == t.read {
		return t.made, nil
	}
	made, err := parseKey(content, t.client)
	switch {
	case err == nil:
		t.made, t.read = made, sum
	case t.made == nil:
		return nil, permanent("credentialsFile: %q %w", t.file, err)
	default:
		providers.Logger(ctx).LogAttrs(ctx, slog.LevelWarn, "gcp goes on with the credential before",
			slog.String("credentialsFile", t.file), slog.String("error", err.Error()))
	}
	return t.made, nil
}

// byDefault looks for application default credentials. That there are none is not kept:
// a metadata server may answer late.
func (t *tokens) byDefault() (*auth.Credentials, error) {
	if t.made != nil {
		return t.made, nil
	}
	made, err := credentials.DetectDefault(t.options())
	if err != nil {
		return nil, transient("application default credentials were not found: set credentialsFile, " +
			"or give the worker an identity")
	}
	t.made = made
	return made, nil
}

func (t *tokens) options() *credentials.DetectOptions { return detectOptions(t.client) }

func detectOptions(client *http.Client) *credentials.DetectOptions {
	return &credentials.DetectOptions{
		Scopes: []string{scope}, UseSelfSignedJWT: true, Client: client, Logger: slog.New(slog.DiscardHandler),
		DisableAsyncRefresh: true, // a refresh belongs to a call, and ends with it
	}
}

// readKey reads a credential file. That it is not there may change by itself.
func readKey(path string) ([]byte, error) {
	f, err := os.Open(path) //nolint:gosec // the path is the operator's own
	if err != nil {
		return nil, transient("credentialsFile: %q cannot be read: %w", path, cause(err))
	}
	defer func() { _ = f.Close() }()
	content, err := io.ReadAll(io.LimitReader(f, largestKey+1))
	if err != nil {
		return nil, transient("credentialsFile: %q cannot be read: %w", path, cause(err))
	}
	return content, nil
}

// cause is why a file cannot be read, without saying twice which.
func cause(err error) error {
	if e, ok := errors.AsType[*fs.PathError](err); ok {
		return e.Err
	}
	return err
}

// kinds are the credentials that are taken from a file.
func kinds() []credentials.CredType {
	return []credentials.CredType{
		credentials.ServiceAccount, credentials.ExternalAccount,
		credentials.ImpersonatedServiceAccount, credentials.AuthorizedUser,
	}
}

// parseKey makes a credential of the content of a file. Its errors hold nothing of it.
func parseKey(content []byte, client *http.Client) (*auth.Credentials, error) {
	var head struct {
		Type       credentials.CredType `json:"type"`
		PrivateKey string               `json:"private_key"`
	}
	if len(content) > largestKey || json.Unmarshal(bytes.TrimSpace(content), &head) != nil {
		return nil, errors.New("is no credential: it is not the JSON of one")
	}
	if !slices.Contains(kinds(), head.Type) {
		return nil, fmt.Errorf("is no credential: its type is none of %v", kinds())
	}
	if head.Type == credentials.ServiceAccount && !isPrivateKey(head.PrivateKey) {
		return nil, errors.New("is no key of a service account: private_key is not one")
	}
	made, err := credentials.NewCredentialsFromJSON(head.Type, content, detectOptions(client))
	if err != nil {
		return nil, fmt.Errorf("is no credential of the type %s: something of it is missing or wrong", head.Type)
	}
	return made, nil
}

// refusedToken is why there is no token, without the answer of the token server, which
// may repeat what it was asked with.
func refusedToken(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if e, ok := errors.AsType[*auth.Error](err); ok && e.Response != nil {
		return &noCredential{transient("no access token: the token server answers %d %s",
			e.Response.StatusCode, tokenReason(e.Body))}
	}
	return &noCredential{transient("no access token: the token server refuses or cannot be reached")}
}

// tokenReason is the code of an OAuth error, such as invalid_grant.
func tokenReason(body []byte) string {
	var answer struct {
		Error string `json:"error"`
	}
	if json.Unmarshal(body, &answer) != nil || !oauthCode.MatchString(answer.Error) {
		return "without a reason"
	}
	return answer.Error
}
