package providertest

import (
	"github.com/stretchr/testify/require"

	"github.com/egressfleet/egressfleet/providers"
)

// axesStateRows are about ip-source and provisioning-state.
func axesStateRows() []Row {
	return []Row{
		{
			Name: "NoAddressYetIsProvisioning", Section: "4.4", Needs: "Lab.Silence", run: noAddressYetIsProvisioning,
			applies: when(func(p providers.Profile) bool { return p.IPSource == providers.IPDiscovered },
				"the address is there at create"),
			Breaks: "a slow guest is given up as failed, or published without an address",
			Reports: []string{
				"dmacvicar/terraform-provider-libvirt#1047", "dmacvicar/terraform-provider-libvirt#1091",
			},
		},
		{
			Name: "StoppedAfterwardsIsStopped", Section: "4.11", Needs: "Lab.PowerOff", run: stoppedAfterwardsIsStopped,
			Breaks: "the workflow replaces what stopped; it would wait for it for ever",
		},
		{
			Name: "UnknownStateIsStopped", Section: "2.2", Needs: "Lab.Odd", run: unknownStateIsStopped,
			Breaks:  "a word that a new version of the backend invents stops the whole loop",
			Reports: []string{"scrapoxy/scrapoxy#14"},
		},
	}
}

// looksInSilence is for how many looks an address is not there.
const looksInSilence = 10

func noAddressYetIsProvisioning(s *scene) {
	restore := s.suite.Lab.Silence(s.host, s.p)
	defer restore()
	req, id := s.created()
	for range looksInSilence {
		found := s.get(id)
		require.Equal(s, providers.StateProvisioning, found.State, "there is no address yet")
		require.Empty(s, found.IP)
	}
	require.Equal(s, providers.StateProvisioning, s.onceListed(req.UID).State, "in the list")
	restore()
	s.running(id, nothing)
}

// down are the states of an instance that does not come back by itself.
func down() []providers.State {
	return []providers.State{providers.StateStopped, providers.StateTerminated}
}

func stoppedAfterwardsIsStopped(s *scene) {
	_, id := s.created()
	s.running(id, nothing)
	s.suite.Lab.PowerOff(s.host, s.p, id)
	var found providers.Instance
	s.eventually(s.suite.RunningWithin, "Get no longer says Running", func() bool {
		found = s.get(id)
		return found.State != providers.StateRunning
	})
	require.Contains(s, down(), found.State, "of an instance that was stopped after it ran")
}

func unknownStateIsStopped(s *scene) {
	odd, id := s.created()
	other, another := s.created()
	s.running(id, nothing)
	s.running(another, nothing)
	s.suite.Lab.Odd(s.host, s.p, id)
	require.Contains(s, down(), s.get(id).State, "Get of a state that nobody knows")
	require.Contains(s, down(), s.onceListed(odd.UID).State, "ListByTag of a state that nobody knows")
	require.Equal(s, providers.StateRunning, s.get(another).State, "another instance")
	require.Equal(s, another, s.onceListed(other.UID).ID)
}
