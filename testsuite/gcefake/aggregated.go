package gcefake

import (
	"fmt"
	"slices"
	"strconv"
)

// aggregate answers with the resources of all zones. Every zone is named on every
// page; one without results has a warning in their place. A zone that cannot be
// reached fails the call, unless it asked for partial success.
// https://cloud.google.com/compute/docs/reference/rest/v1/instances/aggregatedList
// and case gcp-list-unreachable.
func (c *call) aggregate(kind, word string, all []entry) (any, error) {
	cut := c.cutZones()
	partial, _ := strconv.ParseBool(c.query.Get("returnPartialSuccess"))
	if len(cut) > 0 && !partial {
		return nil, Captured("get-503-backend")
	}
	all = slices.DeleteFunc(all, func(e entry) bool { return slices.Contains(cut, e.scope) })
	page, next, err := c.page(all)
	if err != nil {
		return nil, err
	}
	byScope, err := render(page, word)
	if err != nil {
		return nil, err
	}
	c.warn(byScope, cut)
	out := map[string]any{"kind": kind, "id": "projects/" + c.project + "/aggregated/" + word, "items": byScope}
	if next != "" {
		out["nextPageToken"] = next
	}
	if len(cut) > 0 {
		out["unreachables"] = c.unreachables(cut)
		out["warning"] = warning("PARTIAL_SUCCESS", "Success is reported, but some results may be missing due to errors", "")
	}
	return out, nil
}

func (c *call) warn(byScope map[string]scoped, cut []string) {
	for zone := range c.world.zones {
		scope := "zones/" + zone
		switch {
		case slices.Contains(cut, scope):
			text := fmt.Sprintf("The zone 'projects/%s/%s' is currently unreachable.", c.project, scope)
			byScope[scope] = scoped{"warning": warning("UNREACHABLE", text, scope)}
		case byScope[scope] == nil:
			text := fmt.Sprintf("There are no results for scope '%s' on this page.", scope)
			byScope[scope] = scoped{"warning": warning("NO_RESULTS_ON_PAGE", text, scope)}
		}
	}
}

func (c *call) unreachables(cut []string) []string {
	out := make([]string, 0, len(cut))
	for _, scope := range cut {
		out = append(out, "projects/"+c.project+"/"+scope)
	}
	return out
}
