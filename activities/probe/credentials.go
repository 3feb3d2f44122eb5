package probe

import (
	"encoding/base64"
	"errors"
	"log/slog"
	"strings"
)

// redacted is what stands for credentials wherever they could be seen.
const redacted = "[redacted]"

// Credentials are a user and a password for a proxy. They cannot be printed, logged
// or serialised; only a request to the proxy carries them. The zero value is none.
type Credentials struct{ user, password string }

// ParseCredentials reads "user:password", with an end of line where a file has one. The
// error does not hold the text.
func ParseCredentials(text string) (Credentials, error) {
	user, password, found := strings.Cut(strings.TrimRight(text, "\r\n"), ":")
	if !found || user == "" {
		return Credentials{}, errors.New("the proxy's credentials are not in the form user:password")
	}
	if strings.ContainsAny(user+password, "\r\n\x00") {
		return Credentials{}, errors.New("the proxy's credentials hold a control character")
	}
	return Credentials{user: user, password: password}, nil
}

// IsZero reports whether there are none.
func (c Credentials) IsZero() bool { return c == Credentials{} }

// header is the line of a request that carries them, or "".
func (c Credentials) header() string {
	if c.IsZero() {
		return ""
	}
	return "Proxy-Authorization: Basic " + base64.StdEncoding.EncodeToString([]byte(c.user+":"+c.password)) + "\r\n"
}

// String hides them.
func (c Credentials) String() string { return redacted }

// GoString hides them from %#v.
func (c Credentials) GoString() string { return redacted }

// LogValue hides them from a log.
func (c Credentials) LogValue() slog.Value { return slog.StringValue(redacted) }

// MarshalText hides them from JSON and YAML.
func (c Credentials) MarshalText() ([]byte, error) { return []byte(redacted), nil }
