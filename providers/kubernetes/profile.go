package kubernetes

import "github.com/egressfleet/egressfleet/providers"

// Profile is the answer on every axis of the contract; the guide has the reasons.
func (*Provider) Profile() providers.Profile {
	return providers.Profile{
		Readiness:          providers.ReadinessProvisioningWindow,
		CreateReturn:       providers.CreateSubmit,
		DeleteReturn:       providers.DeleteReturnsEarly,
		IPSource:           providers.IPDiscovered,
		GCMark:             providers.MarkNativeLabels,
		CreatedAt:          providers.CreatedAtBackend,
		ListPartial:        providers.ListOmitUnreachable,
		Quota:              providers.QuotaDetected,
		NotFound:           providers.NotFoundStatus404,
		PrimaryKey:         providers.KeyName,
		ProvisioningState:  providers.ProvisioningNative,
		AsyncOps:           providers.AsyncNone,
		SecondaryResources: providers.SecondaryNone,
		Credentials:        providers.CredentialsMountedFiles,
		ClientKind:         providers.ClientVendorSDK,
		Timeouts:           providers.TimeoutsPerCall,
		Logging:            providers.LoggingTiered,
		ChildSpans:         providers.SpansTransport,
		BackendTest:        providers.TestClusterE2E,
	}
}
