package gcefake

import (
	"net/http"
	"slices"
)

const (
	inProject = "/compute/v1/projects/{project}"
	inZone    = inProject + "/zones/{zone}"
	inRegion  = inProject + "/regions/{region}"
	inGlobal  = inProject + "/global"
)

// route is one method of the API.
type route struct {
	pattern, method string
	handle          handler
}

// routes is what the server knows:
// https://cloud.google.com/compute/docs/reference/rest/v1 has the same methods.
func (s *Server) routes() *http.ServeMux {
	mux := http.NewServeMux()
	for _, r := range slices.Concat(
		instanceRoutes(), diskRoutes(), firewallRoutes(), catalogueRoutes(), operationRoutes(),
	) {
		mux.HandleFunc(r.pattern, s.serve(r.method, r.handle))
	}
	mux.HandleFunc("/", func(w http.ResponseWriter, _ *http.Request) { wrongRoute().send(w) })
	return mux
}

func instanceRoutes() []route {
	return []route{
		{"POST " + inZone + "/instances", "instances.insert", insertInstance},
		{"GET " + inZone + "/instances", "instances.list", listInstances},
		{"GET " + inZone + "/instances/{name}", "instances.get", getInstance},
		{"DELETE " + inZone + "/instances/{name}", "instances.delete", deleteInstance},
		{"GET " + inProject + "/aggregated/instances", "instances.aggregatedList", aggregateInstances},
		{"POST " + inZone + "/instances/{name}/stop", "instances.stop", stopInstance},
		{"POST " + inZone + "/instances/{name}/start", "instances.start", startInstance},
		{"POST " + inZone + "/instances/{name}/suspend", "instances.suspend", suspendInstance},
		{"POST " + inZone + "/instances/{name}/resume", "instances.resume", startInstance},
		{"POST " + inZone + "/instances/{name}/setLabels", "instances.setLabels", setLabels},
		{"POST " + inZone + "/instances/{name}/setDeletionProtection", "instances.setDeletionProtection", protect},
		{"POST " + inZone + "/instances/{name}/testIamPermissions", "instances.testIamPermissions", testPermissions},
	}
}

func diskRoutes() []route {
	return []route{
		{"GET " + inZone + "/disks", "disks.list", listDisks},
		{"GET " + inZone + "/disks/{name}", "disks.get", getDisk},
		{"DELETE " + inZone + "/disks/{name}", "disks.delete", deleteDisk},
		{"GET " + inProject + "/aggregated/disks", "disks.aggregatedList", aggregateDisks},
	}
}

func firewallRoutes() []route {
	return []route{
		{"POST " + inGlobal + "/firewalls", "firewalls.insert", insertFirewall},
		{"GET " + inGlobal + "/firewalls", "firewalls.list", listFirewalls},
		{"GET " + inGlobal + "/firewalls/{name}", "firewalls.get", getFirewall},
		{"PATCH " + inGlobal + "/firewalls/{name}", "firewalls.patch", patchFirewall},
		{"PUT " + inGlobal + "/firewalls/{name}", "firewalls.update", updateFirewall},
		{"DELETE " + inGlobal + "/firewalls/{name}", "firewalls.delete", deleteFirewall},
	}
}

func catalogueRoutes() []route {
	return []route{
		{"GET " + inGlobal + "/images/{name}", "images.get", getImage},
		{"GET " + inGlobal + "/images/family/{name}", "images.getFromFamily", getFamily},
		{"GET " + inZone + "/machineTypes", "machineTypes.list", listMachines},
		{"GET " + inZone + "/machineTypes/{name}", "machineTypes.get", getMachine},
		{"GET " + inProject + "/zones", "zones.list", listZones},
		{"GET " + inZone, "zones.get", getZone},
		{"GET " + inProject + "/regions", "regions.list", listRegions},
		{"GET " + inRegion, "regions.get", getRegion},
		{"GET " + inProject, "projects.get", getProject},
		{"POST /v1/projects/{project}", "projects.testIamPermissions", testPermissions},
		{"POST /v3/projects/{project}", "projects.testIamPermissions", testPermissions},
	}
}

func operationRoutes() []route {
	return []route{
		{"GET " + inZone + "/operations", "zoneOperations.list", listOperations},
		{"GET " + inZone + "/operations/{name}", "zoneOperations.get", getOperation},
		{"POST " + inZone + "/operations/{name}/wait", "zoneOperations.wait", getOperation},
		{"GET " + inRegion + "/operations", "regionOperations.list", listOperations},
		{"GET " + inRegion + "/operations/{name}", "regionOperations.get", getOperation},
		{"POST " + inRegion + "/operations/{name}/wait", "regionOperations.wait", getOperation},
		{"GET " + inGlobal + "/operations", "globalOperations.list", listOperations},
		{"GET " + inGlobal + "/operations/{name}", "globalOperations.get", getOperation},
		{"POST " + inGlobal + "/operations/{name}/wait", "globalOperations.wait", getOperation},
	}
}
