package activities

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/egressfleet/egressfleet/providers"
)

func TestWhatAListingShowsAgainstARunningProxy(t *testing.T) {
	t.Parallel()
	e := Expected{Namespace: "default", Name: "a", UID: "u", ID: "zone-a/p", IP: "10.0.0.1"}
	is := func(change func(*providers.Instance)) providers.Inventory {
		i := providers.Instance{ID: e.ID, UID: e.UID, IP: e.IP, State: providers.StateRunning}
		change(&i)
		return providers.Inventory{Instances: []providers.Instance{i}}
	}
	other := []providers.Instance{{ID: "zone-b/q", UID: "v"}}
	tests := map[string]struct {
		all  providers.Inventory
		want string
	}{
		"nothing":                  {is(func(*providers.Instance) {}), ""},
		"a listing without states": {is(func(i *providers.Instance) { i.State, i.IP = "", "" }), ""},
		"stopped":                  {is(func(i *providers.Instance) { i.State = providers.StateStopped }), "is Stopped"},
		"terminated": {
			is(func(i *providers.Instance) { i.State = providers.StateTerminated }), "is Terminated",
		},
		"a state of its own": {is(func(i *providers.Instance) { i.State = "WEIRD" }), "is WEIRD"},
		"restarting": {
			is(func(i *providers.Instance) { i.State, i.IP = providers.StateProvisioning, "" }), "",
		},
		"another address": {is(func(i *providers.Instance) { i.IP = "10.0.0.2" }), "has another address"},
		"being deleted":   {is(func(i *providers.Instance) { i.Deleting = true }), "is being deleted"},
		"another UID":     {is(func(i *providers.Instance) { i.UID = "v" }), "is listed with another UID"},
		"not there":       {providers.Inventory{}, "is not listed"},
		"not there, another part left out": {
			providers.Inventory{Instances: other, Omitted: []string{"zone-b"}}, "is not listed",
		},
		"its part left out": {providers.Inventory{Omitted: []string{"zone-a"}}, ""},
		"itself left out":   {providers.Inventory{Omitted: []string{"zone-a/p"}}, ""},
		"nobody knows what": {providers.Inventory{Omitted: []string{"something"}}, ""},
		"a part of a like name": {
			providers.Inventory{Instances: []providers.Instance{{ID: "zone/q"}}, Omitted: []string{"zone"}}, "is not listed",
		},
		"stopped, another left out": {
			providers.Inventory{
				Instances: []providers.Instance{{ID: e.ID, UID: e.UID, State: providers.StateStopped}}, Omitted: []string{"x"},
			}, "is Stopped",
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			require.Equal(t, tc.want, drifted([]Expected{e}, tc.all)[0].Reason)
		})
	}
}
