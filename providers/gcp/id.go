package gcp

import "strings"

// place is where an instance is, and under which name.
type place struct{ zone, name string }

// id is the providerID: zones/<zone>/instances/<name>. The project is the provider's own.
func (p place) id() string { return p.path("instances") }

// path is that of a zonal resource of the instance's name, without the project.
func (p place) path(collection string) string {
	return "zones/" + p.zone + "/" + collection + "/" + p.name
}

const idParts = 4

// parseID returns the place in a providerID. What Create never returned is ErrPermanent:
// no waiting makes it right.
func parseID(id string) (place, error) {
	parts := strings.Split(id, "/")
	if len(parts) == idParts && parts[0] == "zones" && parts[2] == "instances" &&
		zoneForm.MatchString(parts[1]) && resource.MatchString(parts[3]) {
		return place{parts[1], parts[3]}, nil
	}
	return place{}, permanent("providerID: %q is not of the form zones/<zone>/instances/<name>", id)
}
