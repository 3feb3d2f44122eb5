package feedback

import (
	"net/netip"
	"strings"
	"unicode/utf8"

	"golang.org/x/net/idna"
	"golang.org/x/net/publicsuffix"

	v1 "github.com/egressfleet/egressfleet/api/v1"
)

// hostNames are read as browsers read them, within the lengths of DNS.
var hostNames = idna.New(
	idna.MapForLookup(), idna.BidiRule(), idna.Transitional(false), idna.VerifyDNSLength(true),
)

// Domain returns a host name as it is remembered: lower case, ASCII, without the dot at
// its end. An address is one, too. Errors: *v1.FieldError about field.
func Domain(field, text string) (string, error) {
	if addr, err := netip.ParseAddr(text); err == nil {
		return addr.Unmap().String(), nil
	}
	name, err := hostNames.ToASCII(strings.TrimSuffix(text, "."))
	if err != nil || !utf8.ValidString(text) {
		return "", &v1.FieldError{Field: field, Value: text, Problem: "is not a host name such as www.example.com"}
	}
	// A ban covers what is below its name: one of "com" would cover nearly everything.
	if suffix, icann := publicsuffix.PublicSuffix(name); icann && suffix == name {
		return "", &v1.FieldError{
			Field: field, Value: text, Problem: "is what sites are registered under; name the site, such as example." + name,
		}
	}
	return name, nil
}

// covering are the names whose ban covers a domain: its own, and those above it.
func covering(domain string) []string {
	names := []string{domain}
	if _, err := netip.ParseAddr(domain); err == nil {
		return names
	}
	for {
		_, above, more := strings.Cut(names[len(names)-1], ".")
		if !more {
			return names
		}
		names = append(names, above)
	}
}
