//go:build integration && linux

package kvm

import (
	"testing"
	"time"

	"github.com/egressfleet/egressfleet/providers"
	"github.com/egressfleet/egressfleet/testsuite/providertest"
)

// The whole suite, over real libvirt. The bounds are for guests under emulation on a busy
// machine.
func TestContract(t *testing.T) {
	m := &benches{t: t}
	providertest.Suite{
		New: m.open, Installation: installation, Name: providerName,
		Checker: true, Inventory: true, ListsState: true,
		Request: func(_ *testing.T, req *providers.CreateRequest) {
			req.Placement = providers.Placement{Zone: "kvm1", MachineType: tiny, Image: tiny}
		},
		Lab:           m.hooks(),
		RunningWithin: soon, GoneWithin: soon, PromptWithin: 15 * time.Second, Poll: 100 * time.Millisecond,
	}.Run(t)
}
