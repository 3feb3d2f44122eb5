package fake

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
)

// Credential returns the credential of a call. It is asked at every call, so that a
// rotation needs no restart.
type Credential func(context.Context) (string, error)

var (
	errUnreadable = errors.New("the credential file holds no line that begins with " + tokenKey)
	errUnset      = errors.New("the variable of the credential is not set")
)

// tokenKey begins the line of a credential file.
const tokenKey = "token: "

// WithCredential takes credentials from a source: the pod's identity, a secret store.
func WithCredential(c Credential) Option { return func(p *Provider) { p.credential = c } }

// WithCredentialFile takes the credential from a mounted file with the line
// "token: …". A file that is missing may still come; one without that line will not
// mend itself.
func WithCredentialFile(path string) Option {
	return WithCredential(func(context.Context) (string, error) {
		content, err := os.ReadFile(path) //nolint:gosec // a test says which file
		if err != nil {
			return "", fmt.Errorf("credential file: %w", err)
		}
		token, ok := strings.CutPrefix(string(content), tokenKey)
		if !ok {
			return "", fmt.Errorf("%s: %w", path, errUnreadable)
		}
		return strings.TrimSpace(token), nil
	})
}

// WithEnviron takes the credential from a variable, found with lookup.
func WithEnviron(name string, lookup func(string) (string, bool)) Option {
	return WithCredential(func(context.Context) (string, error) {
		token, ok := lookup(name)
		if !ok {
			return "", fmt.Errorf("%s: %w", name, errUnset)
		}
		return token, nil
	})
}

// currentToken is the credential where nothing else was said: always the right one.
func (p *Provider) currentToken(context.Context) (string, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.token, nil
}
