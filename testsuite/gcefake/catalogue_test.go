package gcefake_test

import (
	"net/http"
	"strings"
	"testing"

	compute "cloud.google.com/go/compute/apiv1"
	"cloud.google.com/go/compute/apiv1/computepb"
	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/proto"

	"github.com/egressfleet/egressfleet/testsuite/gcefake"
)

// rule is a firewall as an insert describes it.
func rule(name string) *computepb.Firewall {
	return &computepb.Firewall{
		Name: &name, SourceRanges: []string{"203.0.113.0/24"}, TargetTags: []string{"egress"},
		Allowed: []*computepb.Allowed{{IPProtocol: proto.String("tcp"), Ports: []string{"3128"}}},
	}
}

func TestFirewalls(t *testing.T) {
	t.Parallel()
	l := start(t, gcefake.Pace{})
	c := client(t, l, compute.NewFirewallsRESTClient)
	get := func() (*computepb.Firewall, error) {
		return c.Get(t.Context(), &computepb.GetFirewallRequest{Project: project, Firewall: "egress"})
	}
	_, err := get()
	require.Equal(t, "notFound", refused(t, err))
	insert := &computepb.InsertFirewallRequest{Project: project, FirewallResource: rule("egress")}
	_, err = c.Insert(t.Context(), insert)
	require.NoError(t, err)
	_, err = c.Insert(t.Context(), insert)
	require.Equal(t, "alreadyExists", refused(t, err))
	_, err = c.Patch(t.Context(), &computepb.PatchFirewallRequest{
		Project: project, Firewall: "egress",
		FirewallResource: &computepb.Firewall{SourceRanges: []string{"198.51.100.7/32"}},
	})
	require.NoError(t, err)
	got, err := get()
	require.NoError(t, err)
	require.Equal(t, []string{"198.51.100.7/32"}, got.GetSourceRanges(), "a list is replaced as a whole")
	require.Equal(t, []string{"3128"}, got.GetAllowed()[0].GetPorts(), "what is not sent stays")
	require.Equal(t, "INGRESS", got.GetDirection())
	_, err = c.Update(t.Context(), &computepb.UpdateFirewallRequest{
		Project: project, Firewall: "egress", FirewallResource: &computepb.Firewall{
			Allowed: []*computepb.Allowed{{IPProtocol: proto.String("tcp"), Ports: []string{"8080"}}},
		},
	})
	require.NoError(t, err)
	one, err := c.List(t.Context(), &computepb.ListFirewallsRequest{Project: project}).Next()
	require.NoError(t, err)
	require.Empty(t, one.GetSourceRanges(), "what is not sent goes")
	require.Equal(t, got.GetId(), one.GetId())
	_, err = c.Delete(t.Context(), &computepb.DeleteFirewallRequest{Project: project, Firewall: "egress"})
	require.NoError(t, err)
	require.Empty(t, l.Firewalls())
	_, err = c.Insert(t.Context(), &computepb.InsertFirewallRequest{
		Project: project, FirewallResource: &computepb.Firewall{Name: proto.String("none")},
	})
	require.Equal(t, "invalid", refused(t, err))
}

func TestCatalogue(t *testing.T) {
	t.Parallel()
	l := start(t, gcefake.Pace{})
	images := client(t, l, compute.NewImagesRESTClient)
	image, err := images.GetFromFamily(t.Context(), &computepb.GetFromFamilyImageRequest{
		Project: "debian-cloud", Family: "debian-12",
	})
	require.NoError(t, err)
	same, err := images.Get(t.Context(), &computepb.GetImageRequest{Project: "debian-cloud", Image: image.GetName()})
	require.NoError(t, err)
	require.Equal(t, image.GetSelfLink(), same.GetSelfLink())
	_, err = images.GetFromFamily(t.Context(), &computepb.GetFromFamilyImageRequest{
		Project: "debian-cloud", Family: "debian-10",
	})
	require.Equal(t, "notFound", refused(t, err))
	machines := client(t, l, compute.NewMachineTypesRESTClient)
	machine, err := machines.Get(t.Context(), &computepb.GetMachineTypeRequest{
		Project: project, Zone: zoneA, MachineType: "e2-small",
	})
	require.NoError(t, err)
	require.Equal(t, int32(2), machine.GetGuestCpus())
	_, err = machines.Get(t.Context(), &computepb.GetMachineTypeRequest{
		Project: project, Zone: zoneA, MachineType: "f1-micro",
	})
	require.Equal(t, "notFound", refused(t, err))
	_, err = machines.List(t.Context(), &computepb.ListMachineTypesRequest{Project: project, Zone: zoneA}).Next()
	require.NoError(t, err)
	zones := client(t, l, compute.NewZonesRESTClient)
	zone, err := zones.Get(t.Context(), &computepb.GetZoneRequest{Project: project, Zone: zoneA})
	require.NoError(t, err)
	require.Equal(t, "UP", zone.GetStatus())
	first, err := zones.List(t.Context(), &computepb.ListZonesRequest{Project: project}).Next()
	require.NoError(t, err)
	require.Equal(t, "europe-west1-b", first.GetName())
	regions := client(t, l, compute.NewRegionsRESTClient)
	region, err := regions.Get(t.Context(), &computepb.GetRegionRequest{Project: project, Region: "us-central1"})
	require.NoError(t, err)
	require.Len(t, region.GetZones(), 4)
	one, err := regions.List(t.Context(), &computepb.ListRegionsRequest{Project: project}).Next()
	require.NoError(t, err)
	require.Equal(t, "europe-west1", one.GetName())
}

func TestQuotas(t *testing.T) {
	t.Parallel()
	l := start(t, gcefake.Pace{})
	l.SetQuota(project, "us-central1", "CPUS", 3)
	l.made(t, vm)
	regions := client(t, l, compute.NewRegionsRESTClient)
	used := func() (cpus, instances, limit float64) {
		region, err := regions.Get(t.Context(), &computepb.GetRegionRequest{Project: project, Region: "us-central1"})
		require.NoError(t, err)
		for _, q := range region.GetQuotas() {
			switch q.GetMetric() {
			case "CPUS":
				cpus, limit = q.GetUsage(), q.GetLimit()
			case "INSTANCES":
				instances = q.GetUsage()
			}
		}
		return cpus, instances, limit
	}
	cpus, instances, limit := used()
	require.Equal(t, []float64{2, 1, 3}, []float64{cpus, instances, limit})
	op := l.made(t, "proxy-b")
	done := l.operation(t, op.Name())
	require.Equal(t, "QUOTA_EXCEEDED", done.GetError().GetErrors()[0].GetCode())
	require.Contains(t, done.GetError().GetErrors()[0].GetMessage(),
		"Quota 'CPUS' exceeded.  Limit: 3.0 in region us-central1.")
	l.Instance(at(vm)).PowerOff()
	cpus, instances, _ = used()
	require.Equal(t, []float64{0, 1}, []float64{cpus, instances}, "what is stopped has no CPUs")
	projects := client(t, l, compute.NewProjectsRESTClient)
	whole, err := projects.Get(t.Context(), &computepb.GetProjectRequest{Project: project})
	require.NoError(t, err)
	require.NotEmpty(t, whole.GetQuotas())
}

func TestPermissions(t *testing.T) {
	t.Parallel()
	l := start(t, gcefake.Pace{})
	restore := l.Forbid("compute.instances.create")
	_, err := l.insert(t, wanted(vm))
	require.Equal(t, "forbidden", refused(t, err))
	require.ErrorContains(t, err, "Required 'compute.instances.create' permission for "+
		"'projects/example-proj/zones/us-central1-a/instances/"+vm)
	ask := `{"permissions": ["compute.instances.create", "compute.instances.delete"]}`
	where := l.URL + "/v1/projects/" + project + ":testIamPermissions"
	answer, err := http.Post(where, "application/json", strings.NewReader(ask))
	require.NoError(t, err)
	defer func() { require.NoError(t, answer.Body.Close()) }()
	var got map[string][]string
	decode(t, answer, &got)
	require.Equal(t, []string{"compute.instances.delete"}, got["permissions"])
	restore()
	l.made(t, vm)
	tested, err := l.instances.TestIamPermissions(t.Context(), &computepb.TestIamPermissionsInstanceRequest{
		Project: project, Zone: zoneA, Resource: vm,
		TestPermissionsRequestResource: &computepb.TestPermissionsRequest{Permissions: []string{"compute.instances.get"}},
	})
	require.NoError(t, err)
	require.Equal(t, []string{"compute.instances.get"}, tested.GetPermissions())
}
