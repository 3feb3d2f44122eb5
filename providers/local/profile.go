package local

import "github.com/egressfleet/egressfleet/providers"

// Profile is the answer on every axis of the contract; doc.go has the reasons.
func (*Provider) Profile() providers.Profile {
	return providers.Profile{
		Readiness:          providers.ReadinessImmediate,
		CreateReturn:       providers.CreateBlocking,
		DeleteReturn:       providers.DeleteWaits,
		IPSource:           providers.IPAssignedAtCreate,
		GCMark:             providers.MarkWrittenMetadata,
		CreatedAt:          providers.CreatedAtWritten,
		ListPartial:        providers.ListFailWhole,
		Quota:              providers.QuotaDetected,
		NotFound:           providers.NotFoundErrorCode,
		PrimaryKey:         providers.KeyName,
		ProvisioningState:  providers.ProvisioningCreateBlocks,
		AsyncOps:           providers.AsyncNone,
		SecondaryResources: providers.SecondaryExplicit,
		Credentials:        providers.CredentialsNone,
		ClientKind:         providers.ClientSystem,
		Timeouts:           providers.TimeoutsPerCall,
		Logging:            providers.LoggingTiered,
		ChildSpans:         providers.SpansNone,
		BackendTest:        providers.TestUnit,
	}
}
