package fake

import (
	"fmt"
	"regexp"
	"strings"

	"github.com/egressfleet/egressfleet/providers"
)

// The two locations of the backend, each of which can be cut off alone.
const (
	location  = "mem"
	Elsewhere = "mem-b" // a request lands there with this zone in its placement
)

func locations() []string { return []string{location, Elsewhere} }

// The two forms of an ID: <location>/<DNS label>, and with an allocated key before it.
var (
	nameIsKeyForm = regexp.MustCompile(`^mem(-b)?/[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$`)
	allocatedForm = regexp.MustCompile(`^mem(-b)?/[1-9][0-9]{0,8}-[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$`)
)

// ID returns the ID of the instance with a name, where the name is the key: mem/<name>.
func ID(name string) string { return location + "/" + name }

func (p *Provider) idForm() *regexp.Regexp {
	if p.profile.PrimaryKey == providers.KeyAllocated {
		return allocatedForm
	}
	return nameIsKeyForm
}

// id returns the ID of what has a name and a key in a location.
func (p *Provider) id(at, name string, key int) string {
	if p.profile.PrimaryKey == providers.KeyAllocated {
		return fmt.Sprintf("%s/%d-%s", at, key, name)
	}
	return at + "/" + name
}

// parts returns the location and the name of an ID that is well-formed.
func (p *Provider) parts(id string) (at, name string) {
	at, name, _ = strings.Cut(id, "/")
	if p.profile.PrimaryKey == providers.KeyAllocated && allocatedForm.MatchString(id) {
		_, name, _ = strings.Cut(name, "-")
	}
	return at, name
}

// placed returns where a request lands.
func placed(req providers.CreateRequest) string {
	if req.Placement.Zone == Elsewhere {
		return Elsewhere
	}
	return location
}
