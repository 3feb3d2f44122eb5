package v1

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"regexp"
	"strings"
)

// MaxInlineCloudInit bounds the user-data inside a spec, in bytes after decoding:
// it travels in every history of the Proxy. Larger user-data goes by secretRef.
const MaxInlineCloudInit = 512 << 10

// redactedPrefix begins the stand-in for inline user-data in everything that is
// read: "redacted:sha256:<hex>:<bytes>". Written back, it means "as it was".
const redactedPrefix = "redacted:sha256:"

// standIn is the whole of it.
var standIn = regexp.MustCompile(`^` + redactedPrefix + `([0-9a-f]{64}):[1-9][0-9]{0,9}$`)

// Bytes returns inline user-data, decoded. It returns nil for a secretRef, whose
// content only an activity reads.
func (c CloudInit) Bytes() []byte {
	if c.InlineBase64 == "" {
		return []byte(c.Inline)
	}
	raw, _ := base64.StdEncoding.DecodeString(c.InlineBase64) // Validate has decoded it before
	return raw
}

// Digest returns the SHA-256 of user-data in hexadecimal. Inline text and the same
// bytes in base64 have one digest.
func Digest(userData []byte) string {
	sum := sha256.Sum256(userData)
	return hex.EncodeToString(sum[:])
}

// IsRedacted reports whether the user-data is a stand-in.
func (c CloudInit) IsRedacted() bool { return strings.HasPrefix(c.Inline, redactedPrefix) }

// StandsFor returns the SHA-256 in hexadecimal of the content that a stand-in stands
// for, and whether it is a stand-in as Redacted writes it.
func (c CloudInit) StandsFor() (digest string, ok bool) {
	of := standIn.FindStringSubmatch(c.Inline)
	if of == nil || c.InlineBase64 != "" || c.SecretRef != nil {
		return "", false
	}
	return of[1], true
}

// Redacted returns the user-data as it may be shown: a reference as it is, a
// content as its digest and size.
func (c CloudInit) Redacted() CloudInit {
	raw := c.Bytes()
	if c.SecretRef != nil || len(raw) == 0 || c.IsRedacted() {
		return c
	}
	return CloudInit{Inline: fmt.Sprintf("%s%s:%d", redactedPrefix, Digest(raw), len(raw))}
}

// Redacted returns the spec without the content of its user-data. Memo, API and
// command line show this one.
func (s ProxySpec) Redacted() ProxySpec {
	s.CloudInit = s.CloudInit.Redacted()
	return s
}

// Restored returns the spec with the stand-in of was replaced by what it stands
// for. Any other stand-in is a *FieldError: its content is not known here.
func (s ProxySpec) Restored(was ProxySpec) (ProxySpec, error) {
	if !s.CloudInit.IsRedacted() {
		return s, nil
	}
	if s.CloudInit != was.CloudInit.Redacted() {
		return s, &FieldError{
			"spec.cloudInit.inline", s.CloudInit.Inline,
			"stands for another content than the proxy has; give the content itself",
		}
	}
	s.CloudInit = was.CloudInit
	return s, nil
}
