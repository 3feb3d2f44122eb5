package gcp

import (
	"strings"
	"testing"

	"cloud.google.com/go/compute/apiv1/computepb"
	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/proto"

	"github.com/egressfleet/egressfleet/providers"
)

func TestAListKeepsWhatItIsAskedForAndNoUserData(t *testing.T) {
	t.Parallel()
	item := func(key, value string) *computepb.Items { return &computepb.Items{Key: &key, Value: &value} }
	for _, status := range []string{"RUNNING", "TERMINATED", "STAGING"} {
		whole := &computepb.Instance{
			Name: proto.String("ef-1"), Status: &status, StatusMessage: proto.String("no more"),
			CreationTimestamp: proto.String("2026-01-05T06:00:00.000-08:00"),
			Labels: map[string]string{
				providers.MarkManaged: providers.MarkManagedYes, providers.MarkInstallation: "here", providers.MarkUID: "uid",
			},
			Metadata: &computepb.Metadata{Items: []*computepb.Items{
				item(providers.MarkOwner, "crawl/a"), item(keyUserData, strings.Repeat("x", 1<<18)),
				item(providers.MarkSpec, "{}"), item(markPort, "3128"),
			}},
			NetworkInterfaces: []*computepb.NetworkInterface{{
				NetworkIP:     proto.String("10.0.0.1"),
				AccessConfigs: []*computepb.AccessConfig{{NatIP: proto.String("198.51.100.7")}},
			}},
			Scheduling: &computepb.Scheduling{ProvisioningModel: proto.String("SPOT")},
			Disks:      []*computepb.AttachedDisk{{DeviceName: proto.String("boot")}},
		}
		at, kept := place{"us-central1-a", "ef-1"}, lean([]*computepb.Instance{whole})[0]
		for _, addressing := range []string{addressingExternal, addressingInternal} {
			require.Equal(t, view(at, whole, addressing, false), view(at, kept, addressing, false))
		}
		require.Equal(t, "3128", items(kept)[markPort])
		require.NotContains(t, items(kept), keyUserData)
		require.Less(t, proto.Size(kept), 1<<10)
	}
}

func TestAListTakesInstancesThatSayLittle(t *testing.T) {
	t.Parallel()
	require.Equal(t, view(place{}, &computepb.Instance{}, addressingExternal, false),
		view(place{}, lean([]*computepb.Instance{{}})[0], addressingExternal, false))
}
