package gcefake

import (
	"net/http"
	"slices"
	"strings"
)

// Stockout is how a zone says that it has no capacity.
type Stockout int

// How a zone may say it.
const (
	SoldOutLate   Stockout = iota + 1 // the operation fails: case gcp-op-stockout
	SoldOutAtOnce                     // the insert is refused: case gcp-create-503-stockout-sync
)

// Zone is a part of the server that can be broken by itself.
type Zone struct {
	s    *Server
	name string
}

// Zone returns a zone of all projects. It need not exist.
func (s *Server) Zone(name string) Zone { return Zone{s, name} }

// Stockout leaves no capacity for another instance in the zone.
func (z Zone) Stockout(how Stockout) (restore func()) {
	return z.s.set(func(on bool) {
		delete(z.s.soldOut, z.name)
		if on {
			z.s.soldOut[z.name] = how
		}
	})
}

// CutOff lets nobody reach the zone: its calls are answered with 503, and aggregated
// lists leave it out, or fail.
func (z Zone) CutOff() (heal func()) {
	return z.s.set(func(on bool) {
		delete(z.s.cut, z.name)
		if on {
			z.s.cut[z.name] = true
		}
	})
}

// cutZones are the scopes that cannot be reached, in order.
func (s *Server) cutZones() []string {
	var out []string
	for zone := range s.cut {
		if s.world.zones[zone] {
			out = append(out, "zones/"+zone)
		}
	}
	slices.Sort(out)
	return out
}

func (s *Server) reachable(_ *http.Request, c *call) error {
	if s.cut[c.zone()] {
		return Captured("get-503-backend")
	}
	return nil
}

// noCapacity refuses an insert where the zone says so at once.
func (c *call) noCapacity() error {
	if c.soldOut[c.zone()] == SoldOutAtOnce {
		return Captured("create-503-stockout-sync").About(c.project, c.zone(), "")
	}
	return nil
}

// Forbid takes a permission from the caller, as compute.instances.create: calls that
// need it are refused, and testIamPermissions does not name it. Case gcp-create-403-iam.
func (s *Server) Forbid(permission string) (restore func()) {
	return s.set(func(on bool) {
		delete(s.forbidden, permission)
		if on {
			s.forbidden[permission] = true
		}
	})
}

// permission is what a method needs.
// https://cloud.google.com/compute/docs/access/iam-permissions
func permission(method string) string {
	collection, verb, _ := strings.Cut(method, ".")
	switch verb {
	case "insert":
		verb = "create"
	case "aggregatedList":
		verb = "list"
	case "patch":
		verb = "update"
	case "wait":
		verb = "get"
	case "getFromFamily":
		verb = "getFromFamily"
	}
	return "compute." + collection + "." + verb
}

func (s *Server) permitted(_ *http.Request, c *call) error {
	need := permission(c.method)
	if !s.forbidden[need] || strings.HasSuffix(c.method, ".testIamPermissions") {
		return nil
	}
	collection, _, _ := strings.Cut(c.method, ".")
	on := c.key().path(collection)
	if c.name == "" {
		on = "projects/" + c.project
	}
	return refusal(http.StatusForbidden, "forbidden", "Required '%s' permission for '%s'", need, on)
}

// Accept lets only calls with one of the access tokens in; none lets every call in.
// Case gcp-get-401.
func (s *Server) Accept(tokens ...string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.tokens = tokens
}

func (s *Server) credential(r *http.Request, _ *call) error {
	given, _ := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
	if len(s.tokens) > 0 && !slices.Contains(s.tokens, given) {
		return Captured("get-401")
	}
	return nil
}
