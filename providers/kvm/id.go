package kvm

import (
	"regexp"
	"strings"

	"github.com/egressfleet/egressfleet/providers"
)

// An ID is "hosts/<host>/domains/<name>": where an instance is does not depend on the
// configuration that chose the host.
const (
	hostsPrefix  = "hosts" + providers.IDSeparator
	domainsInfix = providers.IDSeparator + "domains" + providers.IDSeparator
)

// labelForm is a DNS-1123 label of at most 63 characters. It is also a safe file name.
var labelForm = regexp.MustCompile(`^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?$`)

func isLabel(s string) bool { return labelForm.MatchString(s) }

// location begins every ID of a host; it is what an inventory calls a host that it left out.
func location(host string) string { return hostsPrefix + host }

func formatID(host, name string) string { return location(host) + domainsInfix + name }

// parseID returns the host and the name in an ID. What Create never returned is ErrPermanent.
func parseID(id string) (host, name string, err error) {
	rest, ok := strings.CutPrefix(id, hostsPrefix)
	host, name, two := strings.Cut(rest, domainsInfix)
	if !ok || !two || !isLabel(host) || !isLabel(name) {
		return "", "", permanent("providerID: %q is not of the form hosts/<host>/domains/<name>", id)
	}
	return host, name, nil
}
