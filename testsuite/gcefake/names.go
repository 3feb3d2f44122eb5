package gcefake

import (
	"fmt"
	"regexp"
	"strings"
	"time"
)

// host is what selfLinks begin with, whatever address the server has.
const host = "https://compute.googleapis.com/compute/v1/"

// key names a resource within its collection.
type key struct{ project, scope, name string }

// path is the resource without the host: projects/p/zones/z/instances/n.
func (k key) path(collection string) string {
	return fmt.Sprintf("projects/%s/%s/%s/%s", k.project, k.scope, collection, k.name)
}

func (k key) link(collection string) string { return host + k.path(collection) }

// base is the last part of a URL.
func base(link string) string { return link[strings.LastIndexByte(link, '/')+1:] }

// regionOf is the region of a zone: us-central1-a is in us-central1.
func regionOf(zone string) string {
	if i := strings.LastIndexByte(zone, '-'); i > 0 {
		return zone[:i]
	}
	return zone
}

// Pacific is where the timestamps of Compute Engine are from. It has no summer, so that
// the server needs no time zone database.
func pacific() *time.Location { return time.FixedZone("PST", -8*60*60) }

// stamp renders a time as creationTimestamp has it: 2024-06-26T11:42:22.006-08:00.
func stamp(t time.Time) *string {
	text := t.In(pacific()).Format("2006-01-02T15:04:05.000-07:00")
	return &text
}

// cutScope is strings.CutPrefix, with "" where the scope is of another kind.
func cutScope(scope, prefix string) (string, bool) {
	rest, ok := strings.CutPrefix(scope, prefix)
	if !ok {
		return "", false
	}
	return rest, true
}

var uuid = regexp.MustCompile(`^[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}$`)

func isUUID(text string) bool { return uuid.MatchString(text) }
