package kubernetes

import (
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/egressfleet/egressfleet/providers"
)

// place is where a Pod is; its text is the providerID "<namespace>/<name>".
type place struct{ namespace, name string }

func (p place) id() string { return p.namespace + providers.IDSeparator + p.name }

// parseID returns the place in a providerID. What Create never returned is
// ErrPermanent: no waiting makes it right.
func parseID(id string) (place, error) {
	namespace, name, found := strings.Cut(id, providers.IDSeparator)
	if !found || !isLabel(namespace) || !isLabel(name) {
		return place{}, permanent("providerID: %q is not of the form <namespace>/<name>, both DNS labels", id)
	}
	return place{namespace, name}, nil
}

func isLabel(s string) bool { return len(validation.IsDNS1123Label(s)) == 0 }
