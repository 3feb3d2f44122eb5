// Package layers holds the import table of docs/architecture.md: which room may
// import which, and which libraries a room never sees. Imports only point downwards.
// It imports only the standard library. Start reading at rooms; the test applies it
// to every package of the module.
package layers

import (
	"fmt"
	"slices"
	"strings"
)

// Module is the path that all our packages begin with.
const Module = "github.com/egressfleet/egressfleet"

// room is one line of the table. Paths are relative to the module; "x" is that
// package alone, "x/..." everything below it, too.
type room struct {
	path string
	// open is what the room may import of ours, besides itself.
	open []string
	// closed to internal/..., which every other room may use.
	noInternal bool
	// stdlibOnly allows no library at all.
	stdlibOnly bool
	// never lists packages, and all below them, that the room must not see.
	never []string
}

const (
	temporal = "go.temporal.io"
	echo     = "github.com/labstack/echo"
)

// impure is what makes a workflow do something else when it is replayed.
func impure() []string {
	return []string{
		"net", "os", "io/fs", "database/sql", "math/rand", "crypto/rand", "syscall", echo,
		temporal + "/sdk/client", temporal + "/sdk/activity",
		"cloud.google.com", "k8s.io", "libvirt.org", "github.com/digitalocean", "github.com/elazarl/goproxy",
	}
}

// everything is what a composition root may import.
func everything() []string {
	return []string{
		"api/...", "starter/fleet/...", "workflows/...", "activities/...", "providers/...", "docs/...",
	}
}

// rooms is the table; the longest path that fits a package is its room.
func rooms() []room {
	return []room{
		{path: "api", stdlibOnly: true, noInternal: true},
		{path: "api/client", open: []string{"api/v1"}, never: []string{temporal, echo}},
		{path: "api/v1", stdlibOnly: true, noInternal: true},
		{
			path: "api/server/...",
			open: []string{
				"api", "api/v1", "api/access", "api/discovery/...", "api/feedback", "api/page", "starter/fleet",
			},
			never: []string{temporal},
		},
		{path: "api/page", open: []string{"api/v1"}, never: []string{temporal, echo}},
		{path: "api/access", never: []string{temporal, echo}},
		{path: "api/discovery/...", open: []string{"api/v1", "starter/fleet"}, never: []string{temporal}},
		{path: "api/feedback", open: []string{"api/v1", "starter/fleet"}, never: []string{temporal, echo}},
		{path: "starter/fleet/...", open: []string{"api/v1", "workflows/..."}, never: []string{echo}},
		{path: "workflows/...", open: []string{"api/v1", "activities", "providers"}, never: impure()},
		{path: "activities", open: []string{"api/v1", "providers", "activities/probe"}, never: []string{echo}},
		{path: "activities/probe", open: []string{"api/v1"}, never: []string{temporal, echo}},
		{path: "providers", stdlibOnly: true, noInternal: true},
		{path: "providers/decorators", open: []string{"providers"}, never: []string{temporal, echo}},
		{path: "providers/registry", open: []string{"providers"}, never: []string{temporal, echo}},
		{path: "providers/all", open: []string{"providers/..."}, never: []string{temporal, echo}},
		{path: "providers/*/...", open: []string{"providers"}, never: []string{temporal, echo}},
		{path: "internal/...", open: []string{}},
		{path: "docs/...", stdlibOnly: true},
		{path: "starter/explain", open: []string{"api/v1"}, never: append(impure(), temporal)},
		{path: "starter/terminal", never: []string{temporal, echo}},
		{path: "starter", open: append(everything(), "starter/explain", "starter/terminal")},
		{path: "worker/...", open: everything()},
		{path: "testsuite/...", open: append(everything(), "tools/...", "worker/hands")},
		{path: "tools/...", open: append(everything(), "testsuite/...")},
	}
}

// Violation says why a package must not import another one; "" when it may. Both are
// full import paths. Imports of test files are not its business.
func Violation(from, imported string) string {
	pkg := relative(from)
	r, ok := roomOf(pkg)
	if !ok {
		return fmt.Sprintf("%s is in no room: add a line to the table, or move it", from)
	}
	if !ours(imported) {
		return r.library(pkg, imported)
	}
	to := relative(imported)
	switch target, known := roomOf(to); {
	case !known:
		return fmt.Sprintf("%s imports %s, which is in no room", pkg, to)
	case target.path == r.path && together(r, pkg, to):
		return ""
	case strings.HasPrefix(target.path, "internal/") && !r.noInternal:
		return ""
	case slices.ContainsFunc(r.open, func(pattern string) bool { return fits(pattern, to) }):
		return ""
	}
	return fmt.Sprintf("%s must not import %s", pkg, to)
}

func (r room) library(pkg, imported string) string {
	if r.stdlibOnly && strings.Contains(strings.Split(imported, "/")[0], ".") {
		return fmt.Sprintf("%s imports only the standard library, not %s", pkg, imported)
	}
	for _, forbidden := range r.never {
		if under(imported, forbidden) && !allowedBelow(imported) {
			return fmt.Sprintf("%s must not see %s", pkg, imported)
		}
	}
	return ""
}

// allowedBelow are pure packages below a forbidden one.
func allowedBelow(imported string) bool {
	return slices.Contains([]string{"net/netip", "net/url"}, imported)
}

// together reports whether two packages that one line speaks of are in one room:
// each provider type is a room of its own.
func together(r room, from, to string) bool {
	before, _, wild := strings.Cut(r.path, "*")
	depth := strings.Count(before, "/") + 1
	return !wild || head(from, depth) == head(to, depth)
}

func roomOf(pkg string) (found room, ok bool) {
	for _, r := range rooms() {
		if fits(r.path, pkg) && (!ok || weight(r.path) > weight(found.path)) {
			found, ok = r, true
		}
	}
	return found, ok
}

// weight is the length of a pattern, in which a wildcard counts for nothing.
func weight(pattern string) int { return len(strings.Trim(pattern, "/.*")) }

// fits reports whether a package is what a pattern speaks of.
func fits(pattern, pkg string) bool {
	below, tree := strings.CutSuffix(pattern, "/...")
	if before, _, wild := strings.Cut(below, "*"); wild {
		rest, found := strings.CutPrefix(pkg, before)
		return found && rest != ""
	}
	return pkg == below || tree && under(pkg, below)
}

func under(pkg, root string) bool { return pkg == root || strings.HasPrefix(pkg, root+"/") }

func ours(path string) bool { return under(path, Module) }

func relative(path string) string {
	return strings.TrimPrefix(strings.TrimPrefix(path, Module), "/")
}

// head returns the first n elements of a path.
func head(path string, n int) string {
	parts := strings.Split(path, "/")
	return strings.Join(parts[:min(n, len(parts))], "/")
}
