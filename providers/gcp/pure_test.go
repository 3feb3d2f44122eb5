package gcp

import (
	"fmt"
	"regexp"
	"strings"
	"testing"
	"time"

	"cloud.google.com/go/compute/apiv1/computepb"
	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/proto"

	"github.com/egressfleet/egressfleet/providers"
)

func TestParseID(t *testing.T) {
	t.Parallel()
	got, err := parseID("zones/us-central1-a/instances/proxy-4oymiquy7qobjgx3")
	require.NoError(t, err)
	require.Equal(t, place{"us-central1-a", "proxy-4oymiquy7qobjgx3"}, got)
	require.Equal(t, "zones/us-central1-a/instances/proxy-4oymiquy7qobjgx3", got.id())
	for _, id := range []string{
		"", "x", "zones/us-central1-a/instances/", "zones//instances/x", "zones/us-central1/instances/x",
		"zones/us-central1-a/disks/x", "zones/us-central1-a/instances/X", "zones/us-central1-a/instances/x/y",
		"projects/p/zones/us-central1-a/instances/x", "zones/us-central1-a/instances/x ", "zones/../instances/x",
		"regions/us-central1/instances/x", "zones/us-central1-a/instances/" + strings.Repeat("a", 64),
	} {
		_, err := parseID(id)
		require.Equal(t, providers.ErrPermanent, classify(err, about{op: providers.OpGet}), "%q", id)
		require.ErrorContains(t, err, fmt.Sprintf("%q", id))
	}
}

func TestStateOf(t *testing.T) {
	t.Parallel()
	const ip = "203.0.113.7"
	for status, c := range map[string]struct {
		address string
		want    providers.State
	}{
		"PENDING": {"", providers.StateProvisioning}, "PROVISIONING": {"", providers.StateProvisioning},
		"STAGING": {ip, providers.StateProvisioning}, "RUNNING": {ip, providers.StateRunning},
		"PENDING_STOP": {ip, providers.StateStopped}, "STOPPING": {"", providers.StateStopped},
		"STOPPED": {"", providers.StateStopped}, "SUSPENDING": {ip, providers.StateStopped},
		"SUSPENDED": {"", providers.StateStopped}, "REPAIRING": {ip, providers.StateProvisioning},
		"DEPROVISIONING": {"", providers.StateStopped}, "TERMINATED": {"", providers.StateTerminated},
		"": {ip, providers.StateStopped}, "HIBERNATING_2030": {ip, providers.StateStopped},
	} {
		state, why := stateOf(&computepb.Instance{Status: &status}, c.address)
		require.Equal(t, c.want, state, status)
		if state != providers.StateRunning {
			require.Contains(t, why, status)
		}
	}
	state, why := stateOf(&computepb.Instance{Status: proto.String("RUNNING")}, "")
	require.Equal(t, providers.StateProvisioning, state, "without its address")
	require.Contains(t, why, "no address")
	known := map[string]bool{"UNDEFINED_STATUS": true}
	for name := range computepb.Instance_Status_value {
		known[name] = true
	}
	require.Len(t, known, 13, "the client knows a new state: decide what it means")
}

func TestAddressOf(t *testing.T) {
	t.Parallel()
	nat := func(ip string) *computepb.NetworkInterface {
		return &computepb.NetworkInterface{
			NetworkIP: proto.String("10.0.0.2"), AccessConfigs: []*computepb.AccessConfig{{NatIP: &ip}},
		}
	}
	bare := &computepb.NetworkInterface{NetworkIP: proto.String("10.0.0.1")}
	for what, c := range map[string]struct {
		cards              []*computepb.NetworkInterface
		external, internal string
	}{
		"no interface":            {nil, "", ""},
		"external":                {[]*computepb.NetworkInterface{nat("203.0.113.7")}, "203.0.113.7", "10.0.0.2"},
		"internal only":           {[]*computepb.NetworkInterface{bare}, "", "10.0.0.1"},
		"on the second interface": {[]*computepb.NetworkInterface{bare, nat("203.0.113.9")}, "203.0.113.9", "10.0.0.1"},
		"not there yet":           {[]*computepb.NetworkInterface{nat("")}, "", "10.0.0.2"},
		"something that is none":  {[]*computepb.NetworkInterface{nat("soon")}, "", "10.0.0.2"},
		"the first that has one has": {
			[]*computepb.NetworkInterface{nat(""), nat("203.0.113.8")}, "203.0.113.8", "10.0.0.2",
		},
	} {
		i := &computepb.Instance{NetworkInterfaces: c.cards}
		require.Equal(t, c.external, addressOf(i, addressingExternal), what)
		require.Equal(t, c.internal, addressOf(i, addressingInternal), what)
	}
}

func TestARequestIDIsAUUIDOfUIDZoneAndAttempt(t *testing.T) {
	t.Parallel()
	id := requestID("u", "us-central1-a", 1)
	require.Regexp(t, `^[0-9a-f]{8}-[0-9a-f]{4}-8[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$`, id)
	require.Equal(t, id, requestID("u", "us-central1-a", 1), "the same for every repetition")
	for _, other := range []string{
		requestID("v", "us-central1-a", 1), requestID("u", "us-central1-b", 1), requestID("u", "us-central1-a", 2),
		requestID("u\nus-central1-a", "", 1),
	} {
		require.NotEqual(t, id, other)
	}
}

func TestOrder(t *testing.T) {
	t.Parallel()
	zones := []string{"us-central1-a", "us-central1-b", "us-central1-c", "us-central1-f"}
	first := map[string]int{}
	for n := range 400 {
		name := fmt.Sprintf("proxy-%d", n)
		sorted := order(name, zones, never)
		require.ElementsMatch(t, zones, sorted)
		require.Equal(t, sorted, order(name, []string{zones[3], zones[1], zones[0], zones[2]}, never),
			"however they are listed")
		full := func(zone string) bool { return zone == sorted[0] }
		require.Equal(t, append(sorted[1:4:4], sorted[0]), order(name, zones, full), "what had no capacity comes last")
		first[sorted[0]]++
	}
	for zone, n := range first {
		require.Greater(t, n, 50, "names are spread: %s", zone)
	}
}

func TestStockoutsAreForgotten(t *testing.T) {
	t.Parallel()
	s, now := newStockouts(10*time.Minute), time.Now()
	require.False(t, s.out("a", now))
	s.note("a", now)
	s.note("a", now.Add(-time.Hour)) // news of before changes nothing
	require.True(t, s.out("a", now.Add(9*time.Minute)))
	require.False(t, s.out("b", now))
	require.False(t, s.out("a", now.Add(10*time.Minute)))
}

func put(zone, region string) providers.Placement {
	return providers.Placement{Zone: zone, Region: region}
}

func TestLocate(t *testing.T) {
	t.Parallel()
	configured := []string{"us-central1-a", "us-central1-b", "europe-west1-b"}
	for what, c := range map[string]struct {
		in         providers.Placement
		configured []string
		want       candidates
		fails      string
	}{
		"a zone":                   {in: put("us-east1-d", ""), want: candidates{zones: []string{"us-east1-d"}}},
		"a zone and its region":    {in: put("us-east1-d", "us-east1"), want: candidates{zones: []string{"us-east1-d"}}},
		"a zone of another region": {in: put("us-east1-d", "us-west1"), fails: `placement.region: "us-west1"`},
		"a zone that is configured": {
			in: put("us-central1-b", ""), configured: configured, want: candidates{zones: []string{"us-central1-b"}},
		},
		"a zone that is not": {
			in: put("us-central1-c", ""), configured: configured, fails: `placement.zone: "us-central1-c"`,
		},
		"a region for a zone": {in: put("us-central1", ""), fails: `placement.zone: "us-central1"`},
		"a region":            {in: put("", "us-central1"), want: candidates{region: "us-central1"}},
		"a region of the configured": {
			in: put("", "us-central1"), configured: configured, want: candidates{zones: configured[:2]},
		},
		"a region of none": {
			in: put("", "us-east1"), configured: configured, fails: `placement.region: "us-east1"`,
		},
		"a zone for a region":         {in: put("", "us-central1-a"), fails: `placement.region: "us-central1-a"`},
		"nothing, and all configured": {configured: configured, want: candidates{zones: configured}},
		"nothing at all":              {fails: `placement.zone: ""`},
		"a path":                      {in: put("../x", ""), fails: `placement.zone: "../x"`},
	} {
		got, err := locate(c.in, c.configured)
		if c.fails != "" {
			require.ErrorContains(t, err, c.fails, what)
			require.Equal(t, providers.ErrPermanent, classify(err, about{op: providers.OpCreate}), what)
			continue
		}
		require.NoError(t, err, what)
		require.Equal(t, c.want, got, what)
	}
}

func TestImagePath(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]string{
		"my-image":                                    "projects/my-project/global/images/my-image",
		"family/my-family":                            "projects/my-project/global/images/family/my-family",
		"ubuntu-os-cloud/family/ubuntu-24":            "projects/ubuntu-os-cloud/global/images/family/ubuntu-24",
		"ubuntu-os-cloud/ubuntu-2404-v2026":           "projects/ubuntu-os-cloud/global/images/ubuntu-2404-v2026",
		"projects/other-proj/global/images/family/f1": "projects/other-proj/global/images/family/f1",
		"projects/other-proj/global/images/i1":        "projects/other-proj/global/images/i1",
	} {
		got, err := imagePath("my-project", in)
		require.NoError(t, err, in)
		require.Equal(t, want, got)
	}
	for _, in := range []string{
		"", "A", "../x", "a/b/c", "family/", "projects/x/global/images", "https://example.com/x", "my image",
		"projects/other-proj/zones/us-central1-a/disks/d",
	} {
		_, err := imagePath("my-project", in)
		require.ErrorContains(t, err, fmt.Sprintf("%q", in), in)
	}
}

// The rules as Compute Engine's documentation has them.
func TestLabelsAreWhatTheRulesSay(t *testing.T) {
	t.Parallel()
	key := regexp.MustCompile(`^[\p{Ll}\p{Lo}][\p{Ll}\p{Lo}\p{N}_-]{0,62}$`)
	value := regexp.MustCompile(`^[\p{Ll}\p{Lo}\p{N}_-]{0,63}$`)
	for _, text := range []string{
		"", "a", "A", "aA", "1", "a1", "-a", "_", "a_-9", "a b", "a.b", "é", "É", "日本", "٣", "a٣", "½", "a\n", "\xff",
		"a\xff", "\ufffd", strings.Repeat("a", 63), strings.Repeat("a", 64), strings.Repeat("é", 63), strings.Repeat("é", 64),
		strings.Repeat("1", 63), strings.Repeat("1", 64),
	} {
		require.Equal(t, key.MatchString(text), isLabelKey(text), "key %q", text)
		require.Equal(t, value.MatchString(text), isLabelValue(text), "value %q", text)
	}
}

func TestMarksSurviveLabels(t *testing.T) {
	t.Parallel()
	for _, uid := range []string{
		"0f8fad5b-d9cb-469f-a165-70867728950e", "Upper-Case", "with/slash", strings.Repeat("a", 64), "",
	} {
		labels := map[string]string{providers.MarkManaged: "true", providers.MarkUID: asLabel(uid)}
		require.True(t, isLabelValue(labels[providers.MarkUID]), labels[providers.MarkUID])
		require.Equal(t, uid, holder(labels, map[string]string{providers.MarkUID: uid}).UID)
	}
	require.NotEqual(t, asLabel("Upper-Case"), asLabel("Upper-CasE"))
	usual := "0f8fad5b-d9cb-469f-a165-70867728950e"
	require.Equal(t, usual, asLabel(usual), "a UID of the fleet is a label as it is")
	labels := map[string]string{providers.MarkManaged: "true", providers.MarkUID: usual}
	require.Equal(t, usual, holder(labels, nil).UID)
	require.Equal(t, usual, holder(labels, map[string]string{providers.MarkUID: "another"}).UID, "the label decides")
	delete(labels, providers.MarkUID)
	require.Empty(t, holder(labels, map[string]string{providers.MarkUID: usual}).UID, "no label is no mark")
	require.Equal(t, providers.Holder{},
		holder(map[string]string{providers.MarkManaged: "yes", providers.MarkUID: usual}, nil))
}

func TestCheckRequest(t *testing.T) {
	t.Parallel()
	good := func() providers.CreateRequest {
		return providers.CreateRequest{Name: "proxy-a", UID: "u", Port: 3128}
	}
	require.NoError(t, checkRequest(good()))
	text, binary := strings.Repeat("#", maxUserData), "\xff"+strings.Repeat("#", maxBinaryUserData-1)
	for what, c := range map[string]struct {
		change func(*providers.CreateRequest)
		fails  string
	}{
		"no UID":          {func(r *providers.CreateRequest) { r.UID = "" }, "uid"},
		"a bad name":      {func(r *providers.CreateRequest) { r.Name = "A" }, `name: "A"`},
		"port 0":          {func(r *providers.CreateRequest) { r.Port = 0 }, "spec.port: 0"},
		"a port too high": {func(r *providers.CreateRequest) { r.Port = 65536 }, "spec.port: 65536"},
		"a mark": {
			func(r *providers.CreateRequest) { r.Labels = map[string]string{providers.MarkUID: "x"} }, providers.MarkUID,
		},
		"a machine type": {
			func(r *providers.CreateRequest) { r.Placement.MachineType = "a/b" }, `placement.machineType: "a/b"`,
		},
		"text, the limit": {func(r *providers.CreateRequest) { r.CloudInit = []byte(text) }, ""},
		"text, over": {
			func(r *providers.CreateRequest) { r.CloudInit = []byte(text + "#") }, "cloudInit: 262145 bytes",
		},
		"bytes, the limit": {func(r *providers.CreateRequest) { r.CloudInit = []byte(binary) }, ""},
		"bytes, over": {
			func(r *providers.CreateRequest) { r.CloudInit = []byte(binary + "#") }, "more than the 196608",
		},
	} {
		req := good()
		c.change(&req)
		err := checkRequest(req)
		if c.fails == "" {
			require.NoError(t, err, what)
			continue
		}
		require.ErrorContains(t, err, c.fails, what)
		require.Equal(t, providers.ErrPermanent, classify(err, about{op: providers.OpCreate}), what)
	}
}

func TestDecideRule(t *testing.T) {
	t.Parallel()
	rule := func(ports ...string) *computepb.Firewall {
		return &computepb.Firewall{Allowed: []*computepb.Allowed{{IPProtocol: proto.String("tcp"), Ports: ports}}}
	}
	for what, c := range map[string]struct {
		have         *computepb.Firewall
		want         []int
		shrink, same bool
		do           ruleChange
		ports        []int
	}{
		"none is there, none is needed": {nil, nil, true, false, ruleStays, nil},
		"the first port":                {nil, []int{3128}, false, false, ruleInsert, []int{3128}},
		"the port is open":              {rule("3128"), []int{3128}, false, true, ruleStays, []int{3128}},
		"another port":                  {rule("3128"), []int{8080}, false, true, rulePatch, []int{3128, 8080}},
		"a port that nobody uses":       {rule("3128", "8080"), []int{8080}, true, true, rulePatch, []int{8080}},
		"one that is to stay a while":   {rule("3128", "8080"), []int{8080}, false, true, ruleStays, []int{3128, 8080}},
		"the ranges have changed":       {rule("3128"), []int{3128}, false, false, rulePatch, []int{3128}},
		"nobody needs it":               {rule("3128"), nil, true, true, ruleRemove, nil},
		"nobody needs it yet":           {rule("3128"), nil, false, true, ruleStays, []int{3128}},
	} {
		do, ports := decideRule(c.have, c.want, c.shrink, c.same)
		require.Equal(t, c.do, do, what)
		require.Equal(t, c.ports, ports, what)
	}
}
