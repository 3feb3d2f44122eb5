package local

import (
	"regexp"
	"strings"
)

// idPrefix begins every providerID: "local/<name>". There is one location, this
// machine, so no part of the configuration is in it.
const idPrefix = "local/"

// labelForm is a DNS-1123 label of at most 63 characters. It is also a safe file
// name: no separator, no dot.
var labelForm = regexp.MustCompile(`^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?$`)

func isLabel(s string) bool { return labelForm.MatchString(s) }

func formatID(name string) string { return idPrefix + name }

// parseID returns the name in a providerID. What Create never returned is
// ErrPermanent: no waiting makes it right.
func parseID(id string) (string, error) {
	name, ok := strings.CutPrefix(id, idPrefix)
	if !ok || !isLabel(name) {
		return "", permanent("providerID: %q is not of the form %s<name>, with a DNS label as the name", id, idPrefix)
	}
	return name, nil
}
