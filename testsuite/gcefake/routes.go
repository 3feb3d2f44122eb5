package gcefake

import "net/http"

const (
	inProject = "/compute/v1/projects/{project}"
	inZone    = inProject + "/zones/{zone}"
	inRegion  = inProject + "/regions/{region}"
	inGlobal  = inProject + "/global"
)

// routes is the table of what the server knows:
// https://cloud.google.com/compute/docs/reference/rest/v1 has the same methods.
func (s *Server) routes() *http.ServeMux {
	mux := http.NewServeMux()
	for _, r := range []struct {
		pattern, method string
		handle          handler
	}{
		{"POST " + inZone + "/instances", "instances.insert", insertInstance},
		{"GET " + inZone + "/instances", "instances.list", listInstances},
		{"GET " + inZone + "/instances/{name}", "instances.get", getInstance},
		{"DELETE " + inZone + "/instances/{name}", "instances.delete", deleteInstance},
		{"GET " + inProject + "/aggregated/instances", "instances.aggregatedList", aggregateInstances},

		{"GET " + inZone + "/operations", "zoneOperations.list", listOperations},
		{"GET " + inZone + "/operations/{name}", "zoneOperations.get", getOperation},
		{"POST " + inZone + "/operations/{name}/wait", "zoneOperations.wait", getOperation},
		{"GET " + inRegion + "/operations", "regionOperations.list", listOperations},
		{"GET " + inRegion + "/operations/{name}", "regionOperations.get", getOperation},
		{"POST " + inRegion + "/operations/{name}/wait", "regionOperations.wait", getOperation},
		{"GET " + inGlobal + "/operations", "globalOperations.list", listOperations},
		{"GET " + inGlobal + "/operations/{name}", "globalOperations.get", getOperation},
		{"POST " + inGlobal + "/operations/{name}/wait", "globalOperations.wait", getOperation},
	} {
		mux.HandleFunc(r.pattern, s.serve(r.method, r.handle))
	}
	mux.HandleFunc("/", func(w http.ResponseWriter, _ *http.Request) { wrongRoute().send(w) })
	return mux
}
