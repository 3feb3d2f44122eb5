package fake

import (
	"time"

	"github.com/egressfleet/egressfleet/providers"
)

// DefaultInstallation is the installation of a provider made without WithInstallation.
const DefaultInstallation = "test"

// DefaultPace is how many looks a provider made WithProfile needs to move on.
const DefaultPace = 3

// defaultCallTimeout bounds a backend call of a provider with deadlines of its own.
const defaultCallTimeout = 30 * time.Second

// Option changes how a new provider behaves.
type Option func(*Provider)

// WithInstallation sets the installation whose instances are listed.
func WithInstallation(installation string) Option {
	return func(p *Provider) { p.installation = installation }
}

// WithProfile chooses on every axis at once. What takes time moves on by itself, at
// DefaultPace.
func WithProfile(profile providers.Profile) Option {
	return func(p *Provider) { p.profile, p.pace = profile, DefaultPace }
}

// With changes single axes of the profile.
func With(choose func(*providers.Profile)) Option {
	return func(p *Provider) { choose(&p.profile) }
}

// WithPace lets what takes time move on after that many looks at it; 0 leaves that to
// Finish and FinishDeletes.
func WithPace(looks int) Option { return func(p *Provider) { p.pace = looks } }

// WithCallTimeout bounds each backend call of a provider with deadlines of its own.
func WithCallTimeout(d time.Duration) Option { return func(p *Provider) { p.callTimeout = d } }

// WithMaxCloudInit limits user-data to that many bytes, as backends do.
func WithMaxCloudInit(bytes int) Option { return func(p *Provider) { p.maxCloudInit = bytes } }

// WithSlowDelete lets Delete return early: the instance stays, with Deleting set,
// until FinishDeletes, or as long as the pace says.
func WithSlowDelete() Option {
	return With(func(p *providers.Profile) { p.DeleteReturn = providers.DeleteReturnsEarly })
}

// WithProvisioning lets instances start in Provisioning, without an address, until
// Finish, or as long as the pace says.
func WithProvisioning() Option {
	return With(func(p *providers.Profile) {
		p.Readiness, p.IPSource = providers.ReadinessProvisioningWindow, providers.IPDiscovered
	})
}

// Profile is what the options chose.
func (p *Provider) Profile() providers.Profile { return p.profile }

func defaultProfile() providers.Profile {
	return providers.Profile{
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
}
