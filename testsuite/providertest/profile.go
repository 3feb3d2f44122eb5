package providertest

import (
	"github.com/stretchr/testify/require"

	"github.com/egressfleet/egressfleet/providers"
)

func profileRows() []Row {
	return []Row{
		{
			Name: "ProfileAnswersEveryAxis", Section: "4", run: profileAnswersEveryAxis,
			Breaks: "the suite, the time bounds and the table in the docs are derived from it",
		},
		{
			Name: "BlockingCreateReturnsARunningOne", Section: "4.2", run: blockingCreateReturnsARunningOne,
			applies: when(blocks, "create does not block"),
			Breaks:  "whoever read the profile expects no provisioning window",
		},
	}
}

func profileAnswersEveryAxis(s *scene) {
	allowed := Choices()
	for _, axis := range s.profile.Axes() {
		require.Contains(s, allowed[axis.Name], axis.Choice, "axis %s", axis.Name)
	}
}

func blockingCreateReturnsARunningOne(s *scene) {
	_, id := s.created()
	found := s.get(id)
	if s.profile.CreateReturn == providers.CreateBlocking && s.profile.IPSource == providers.IPAssignedAtCreate {
		require.Equal(s, providers.StateRunning, found.State, "the profile says that Create blocks until it runs")
	}
	if s.profile.ProvisioningState == providers.ProvisioningCreateBlocks {
		require.NotEqual(s, providers.StateStopped, found.State, "the profile says that Create blocks until it is started")
	}
}

func blocks(p providers.Profile) bool {
	return p.CreateReturn == providers.CreateBlocking || p.ProvisioningState == providers.ProvisioningCreateBlocks
}

// Choices returns the answers that each axis allows, in the order of the contract.
func Choices() map[string][]string {
	return map[string][]string{
		"readiness":     words(providers.ReadinessImmediate, providers.ReadinessProvisioningWindow),
		"create-return": words(providers.CreateSubmit, providers.CreateBlocking),
		"delete-return": words(providers.DeleteReturnsEarly, providers.DeleteWaits),
		"ip-source":     words(providers.IPAssignedAtCreate, providers.IPDiscovered),
		"gc-mark":       words(providers.MarkNativeLabels, providers.MarkWrittenMetadata, providers.MarkWindow),
		"created-at":    words(providers.CreatedAtBackend, providers.CreatedAtWritten),
		"list-partial":  words(providers.ListFailWhole, providers.ListOmitUnreachable),
		"quota":         words(providers.QuotaDetected, providers.QuotaAbsent),
		"not-found":     words(providers.NotFoundStatus404, providers.NotFoundErrorCode, providers.NotFoundListAndMiss),
		"primary-key":   words(providers.KeyName, providers.KeyAllocated),
		"provisioning-state": words(providers.ProvisioningNative, providers.ProvisioningCreateBlocks,
			providers.ProvisioningMarker),
		"async-ops":           words(providers.AsyncNone, providers.AsyncTaskHandle, providers.AsyncBackendLock),
		"secondary-resources": words(providers.SecondaryNone, providers.SecondaryCascade, providers.SecondaryExplicit),
		"credentials": words(providers.CredentialsNone, providers.CredentialsMountedFiles,
			providers.CredentialsEnvironment, providers.CredentialsWorkloadIdentity),
		"client-kind": words(providers.ClientVendorSDK, providers.ClientThin,
			providers.ClientRPCOverSSH, providers.ClientSystem),
		"timeouts":    words(providers.TimeoutsPerCall, providers.TimeoutsCtxOnly),
		"logging":     words(providers.LoggingTiered, providers.LoggingOutcomeOnly, providers.LoggingNone),
		"child-spans": words(providers.SpansSDK, providers.SpansTransport, providers.SpansDecorator, providers.SpansNone),
		"backend-test": words(providers.TestClusterE2E, providers.TestIntegrationTag,
			providers.TestManualRunbook, providers.TestUnit),
	}
}

func words[S ~string](choices ...S) []string {
	out := make([]string, len(choices))
	for i, c := range choices {
		out[i] = string(c)
	}
	return out
}
