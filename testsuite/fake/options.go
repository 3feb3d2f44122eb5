package fake

import "github.com/egressfleet/egressfleet/providers"

// DefaultInstallation is the installation of a provider made without WithInstallation.
const DefaultInstallation = "test"

// Option changes how a new provider behaves.
type Option func(*Provider)

// WithInstallation sets the installation whose instances are listed.
func WithInstallation(installation string) Option {
	return func(p *Provider) { p.installation = installation }
}

// WithSlowDelete lets Delete return early: the instance stays, with Deleting set,
// until FinishDeletes.
func WithSlowDelete() Option { return func(p *Provider) { p.slowDelete = true } }

// WithProvisioning lets instances start in Provisioning, without an address, until
// Finish.
func WithProvisioning() Option { return func(p *Provider) { p.provisioning = true } }

// Profile follows from the options.
func (p *Provider) Profile() providers.Profile {
	profile := providers.Profile{
		Readiness: providers.ReadinessImmediate, CreateReturn: providers.CreateSubmit,
		DeleteReturn: providers.DeleteWaits, IPSource: providers.IPAssignedAtCreate,
		GCMark: providers.MarkNativeLabels, CreatedAt: providers.CreatedAtBackend,
		ListPartial: providers.ListFailWhole, Quota: providers.QuotaDetected,
		NotFound: providers.NotFoundErrorCode, PrimaryKey: providers.KeyName,
		ProvisioningState: providers.ProvisioningNative, AsyncOps: providers.AsyncNone,
		SecondaryResources: providers.SecondaryNone, Credentials: providers.CredentialsNone,
		ClientKind: providers.ClientSystem, Timeouts: providers.TimeoutsCtxOnly,
		Logging: providers.LoggingNone, ChildSpans: providers.SpansNone, BackendTest: providers.TestUnit,
	}
	if p.provisioning {
		profile.Readiness = providers.ReadinessProvisioningWindow
		profile.IPSource = providers.IPDiscovered
	}
	if p.slowDelete {
		profile.DeleteReturn = providers.DeleteReturnsEarly
	}
	return profile
}
