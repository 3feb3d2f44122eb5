package kvm

import "github.com/egressfleet/egressfleet/providers"

// Profile is the answer on every axis of the contract; docs/providers/kvm.md has the reasons.
func (*Provider) Profile() providers.Profile {
	return providers.Profile{
		Readiness:          providers.ReadinessProvisioningWindow,
		CreateReturn:       providers.CreateBlocking,
		DeleteReturn:       providers.DeleteWaits,
		IPSource:           providers.IPDiscovered,
		GCMark:             providers.MarkWrittenMetadata,
		CreatedAt:          providers.CreatedAtWritten,
		ListPartial:        providers.ListOmitUnreachable,
		Quota:              providers.QuotaDetected,
		NotFound:           providers.NotFoundErrorCode,
		PrimaryKey:         providers.KeyName,
		ProvisioningState:  providers.ProvisioningMarker,
		AsyncOps:           providers.AsyncBackendLock,
		SecondaryResources: providers.SecondaryExplicit,
		Credentials:        providers.CredentialsMountedFiles,
		ClientKind:         providers.ClientRPCOverSSH,
		Timeouts:           providers.TimeoutsPerCall,
		Logging:            providers.LoggingTiered,
		ChildSpans:         providers.SpansDecorator,
		BackendTest:        providers.TestIntegrationTag,
	}
}
