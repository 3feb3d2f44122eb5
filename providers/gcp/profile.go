package gcp

import "github.com/egressfleet/egressfleet/providers"

// Profile is the answer on every axis of the contract; docs/providers/gcp.md has the reasons.
func (*Provider) Profile() providers.Profile {
	return providers.Profile{
		Readiness:          providers.ReadinessProvisioningWindow,
		CreateReturn:       providers.CreateSubmit,
		DeleteReturn:       providers.DeleteReturnsEarly,
		IPSource:           providers.IPAssignedAtCreate,
		GCMark:             providers.MarkNativeLabels,
		CreatedAt:          providers.CreatedAtBackend,
		ListPartial:        providers.ListOmitUnreachable,
		Quota:              providers.QuotaDetected,
		NotFound:           providers.NotFoundStatus404,
		PrimaryKey:         providers.KeyName,
		ProvisioningState:  providers.ProvisioningNative,
		AsyncOps:           providers.AsyncTaskHandle,
		SecondaryResources: providers.SecondaryCascade,
		Credentials:        providers.CredentialsMountedFiles,
		ClientKind:         providers.ClientVendorSDK,
		Timeouts:           providers.TimeoutsPerCall,
		Logging:            providers.LoggingTiered,
		ChildSpans:         providers.SpansSDK,
		BackendTest:        providers.TestIntegrationTag,
	}
}
