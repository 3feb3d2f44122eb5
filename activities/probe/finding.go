package probe

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"regexp"
	"strings"
	"syscall"
	"time"
)

// wordsLimit is how much of a stranger's words a text holds.
const wordsLimit = 80

// finding is what one attempt ran into, before the control probe is asked.
type finding struct {
	cause  Cause
	detail string // what was seen, in words that are ours or were cleaned
	egress netip.Addr
	took   time.Duration
}

// facts are what was seen and how long it took.
func (f finding) facts() string {
	if f.took == 0 {
		return f.detail
	}
	return fmt.Sprintf("%s after %s", f.detail, f.took.Round(time.Millisecond))
}

// text has the facts, and what to look at.
func (f finding) text() string { return join(f.facts(), rules()[f.cause].hint) }

func join(parts ...string) string {
	said := parts[:0:0]
	for _, part := range parts {
		if part != "" {
			said = append(said, part)
		}
	}
	return strings.Join(said, "; ")
}

// squidPage is the only form of squid's header that is repeated.
var squidPage = regexp.MustCompile(`^[A-Z_]{1,40} [0-9]{1,5}$`)

// describe says what was answered. The proxy's own words are left out where it was
// sent credentials: it could repeat them.
func (a answer) describe(trusted bool) string {
	phrase := http.StatusText(a.status)
	if own := clean(a.phrase); trusted && own != "" {
		phrase = own
	}
	text := strings.TrimSpace(fmt.Sprintf("the proxy answered %d %s", a.status, phrase))
	if page := a.header.Get(squidError); squidPage.MatchString(page) && trusted {
		text += " (" + page + ")"
	}
	return text
}

// clean leaves printable ASCII, and not too much of it.
func clean(words string) string {
	words = strings.Map(func(r rune) rune {
		if r < ' ' || r > '~' {
			return '.'
		}
		return r
	}, words)
	if len(words) > wordsLimit {
		return words[:wordsLimit] + "..."
	}
	return words
}

// describeError says what went wrong with a connection, without what the other side
// could have written into it.
func describeError(err error) string {
	for _, known := range []error{errNotHTTP, errTooLong, errMangled, errInterims} {
		if errors.Is(err, known) {
			return known.Error()
		}
	}
	if name, ok := errors.AsType[*net.DNSError](err); ok {
		return "name resolution failed for " + clean(name.Name)
	}
	if errno, ok := errors.AsType[syscall.Errno](err); ok {
		return errno.Error()
	}
	if isTimeout(err) {
		return "no answer within the time"
	}
	if isAlert(err) {
		return "the other side ended TLS with an alert"
	}
	return "the connection was closed"
}

// describeTLS says which part of TLS failed. Names from a certificate that is not the
// target's are a stranger's words.
func describeTLS(err error) string {
	if _, ok := errors.AsType[x509.HostnameError](err); ok {
		return "the certificate is for another name"
	}
	if _, ok := errors.AsType[x509.UnknownAuthorityError](err); ok {
		return "the certificate is signed by nobody whom the prober trusts"
	}
	if invalid, ok := errors.AsType[x509.CertificateInvalidError](err); ok {
		if invalid.Reason == x509.Expired {
			return "the certificate has expired or is not valid yet"
		}
		return "the certificate is not valid"
	}
	if _, ok := errors.AsType[*tls.CertificateVerificationError](err); ok {
		return "the certificate could not be verified"
	}
	switch tlsCause(err) {
	case CauseNotTLS:
		return "what came is not TLS"
	case CauseTunnelClosed:
		return describeError(err)
	default:
		return "TLS could not be agreed on"
	}
}
