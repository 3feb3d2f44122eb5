package probe

import (
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"regexp"
	"strconv"
	"strings"
)

// habitualPort is the one that stock proxies tunnel to; most refuse others.
const habitualPort = 443

const (
	maxPort     = 65535
	maxHostName = 253
)

// hostName is letters, digits, - and _ in labels, with or without a dot at the end.
var hostName = regexp.MustCompile(`^\w([\w-]*\w)?(\.\w([\w-]*\w)?)*\.?$`)

// Target is what a probe asks the proxy for: a server that speaks TLS. The zero value
// is none, and gives the verdict NoTarget without any traffic.
type Target struct {
	Host string // a name or an IP address, without brackets
	Port int
	// Path is what is asked for once TLS stands; empty is "/".
	Path string
	// Roots are whom the target's certificate may be signed by; nil: the system's.
	Roots *x509.CertPool
}

// ParseTarget reads "host", "host:port" or "[ipv6]:port". The port is 443 unless it is
// given. "" is no target. The error says what is wrong with the text.
func ParseTarget(text string) (Target, error) {
	if text == "" {
		return Target{}, nil
	}
	host, port := text, habitualPort
	if h, p, err := net.SplitHostPort(text); err == nil {
		host = h
		if port, err = strconv.Atoi(p); err != nil {
			return Target{}, fmt.Errorf("target %q: port %q is not a whole number", text, p)
		}
	}
	t := Target{Host: strings.TrimSuffix(strings.TrimPrefix(host, "["), "]"), Port: port}
	if err := t.check(); err != nil {
		return Target{}, fmt.Errorf("target %q: %w", text, err)
	}
	return t, nil
}

// IsZero reports whether there is no target.
func (t Target) IsZero() bool { return t.Host == "" }

// Address returns host:port, an IPv6 host in brackets: what CONNECT asks for.
func (t Target) Address() string { return net.JoinHostPort(t.Host, strconv.Itoa(t.Port)) }

// check keeps a host that would end the request line out of it.
func (t Target) check() error {
	if _, err := netip.ParseAddr(t.Host); err != nil && (len(t.Host) > maxHostName || !hostName.MatchString(t.Host)) {
		return fmt.Errorf("host %q is neither a host name nor an IP address", t.Host)
	}
	if strings.Contains(t.Host, "%") {
		return fmt.Errorf("host %q has a zone, which means nothing to a proxy", t.Host)
	}
	if t.Port < 1 || t.Port > maxPort {
		return fmt.Errorf("port \"%d\" is not within 1 to %d", t.Port, maxPort)
	}
	if strings.ContainsFunc(t.Path, func(r rune) bool { return r <= ' ' || r > '~' }) ||
		t.Path != "" && !strings.HasPrefix(t.Path, "/") {
		return errors.New("the path does not begin with /, or holds more than printable ASCII")
	}
	return nil
}

func (t Target) path() string {
	if t.Path == "" {
		return "/"
	}
	return t.Path
}

// Proxy is what is probed.
type Proxy struct {
	Address string // host:port, an IPv6 host in brackets
	// Credentials are sent by Basic authentication, unless they are empty.
	Credentials Credentials
}
