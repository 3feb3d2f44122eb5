package providers

// Profiler says which of the allowed ways a provider meets the contract in. The
// conformance suite asks it what to expect. Contract §4.
type Profiler interface {
	Profile() Profile
}

// Profile is a provider's choice on each of the 19 axes of the contract, in its
// words. The zero value of an axis is no answer, and the suite refuses it.
type Profile struct {
	Readiness          Readiness
	CreateReturn       CreateReturn
	DeleteReturn       DeleteReturn
	IPSource           IPSource
	GCMark             GCMark
	CreatedAt          CreatedAtSource
	ListPartial        ListPartial
	Quota              QuotaSignal
	NotFound           NotFoundSignal
	PrimaryKey         PrimaryKey
	ProvisioningState  ProvisioningState
	AsyncOps           AsyncOps
	SecondaryResources SecondaryResources
	Credentials        Credentials
	ClientKind         ClientKind
	Timeouts           Timeouts
	Logging            Logging
	ChildSpans         ChildSpans
	BackendTest        BackendTest
}

// The axes, each a type of its own so that a choice cannot land on another axis.
type (
	Readiness          string // §4.1: when is an instance usable after Create?
	CreateReturn       string // §4.2: does Create return once submitted or once running?
	DeleteReturn       string // §4.3: does Delete return before the instance is gone?
	IPSource           string // §4.4: where does the IP come from?
	GCMark             string // §4.5: where do the marks live?
	CreatedAtSource    string // §4.6: whose clock is CreatedAt?
	ListPartial        string // §4.7: what if part of the scope cannot be listed?
	QuotaSignal        string // §4.8: can "no capacity" be told from other failures?
	NotFoundSignal     string // §4.9: how is "gone" known?
	PrimaryKey         string // §4.10: is the name the backend's key?
	ProvisioningState  string // §4.11: is there a state for "being created"?
	AsyncOps           string // §4.12: are create and delete tasks?
	SecondaryResources string // §4.13: what else is made, and who removes it?
	Credentials        string // §4.14: where do credentials come from?
	ClientKind         string // §4.15: what talks to the backend?
	Timeouts           string // §4.16: how is a backend call bounded?
	Logging            string // §4.17: which log tiers are there?
	ChildSpans         string // §4.18: how do backend calls appear in a trace?
	BackendTest        string // §4.19: how is it proven on the real backend?
)

// The choices on each axis, in the contract's words.
const (
	ReadinessImmediate          Readiness = "immediate"
	ReadinessProvisioningWindow Readiness = "provisioning-window"

	CreateSubmit   CreateReturn = "submit"
	CreateBlocking CreateReturn = "blocking"

	DeleteReturnsEarly DeleteReturn = "returns-early"
	DeleteWaits        DeleteReturn = "waits"

	IPAssignedAtCreate IPSource = "assigned-at-create"
	IPDiscovered       IPSource = "discovered"

	MarkNativeLabels    GCMark = "native-labels"
	MarkWrittenMetadata GCMark = "written-metadata"
	MarkWindow          GCMark = "mark-window"

	CreatedAtBackend CreatedAtSource = "backend-timestamp"
	CreatedAtWritten CreatedAtSource = "written-at-create"

	ListFailWhole       ListPartial = "fail-whole"
	ListOmitUnreachable ListPartial = "omit-unreachable"

	QuotaDetected QuotaSignal = "detected"
	QuotaAbsent   QuotaSignal = "absent"

	NotFoundStatus404   NotFoundSignal = "status-404"
	NotFoundErrorCode   NotFoundSignal = "error-code"
	NotFoundListAndMiss NotFoundSignal = "list-and-miss"

	KeyName      PrimaryKey = "name-is-key"
	KeyAllocated PrimaryKey = "allocated-id"

	ProvisioningNative       ProvisioningState = "native"
	ProvisioningCreateBlocks ProvisioningState = "create-blocks"
	ProvisioningMarker       ProvisioningState = "marker"

	AsyncNone        AsyncOps = "none"
	AsyncTaskHandle  AsyncOps = "task-handle"
	AsyncBackendLock AsyncOps = "backend-lock"

	SecondaryNone     SecondaryResources = "none"
	SecondaryCascade  SecondaryResources = "cascade"
	SecondaryExplicit SecondaryResources = "explicit"

	CredentialsNone             Credentials = "none" // the backend is the machine itself
	CredentialsMountedFiles     Credentials = "mounted-files"
	CredentialsEnvironment      Credentials = "environment"
	CredentialsWorkloadIdentity Credentials = "workload-identity"

	ClientVendorSDK  ClientKind = "vendor-sdk"
	ClientThin       ClientKind = "thin-client"
	ClientRPCOverSSH ClientKind = "rpc-over-ssh"
	ClientSystem     ClientKind = "system-calls" // no backend beyond the operating system

	TimeoutsPerCall Timeouts = "per-call"
	TimeoutsCtxOnly Timeouts = "ctx-only"

	LoggingTiered      Logging = "tiered"
	LoggingOutcomeOnly Logging = "outcome-only"
	LoggingNone        Logging = "none"

	SpansSDK       ChildSpans = "sdk-instrumentation"
	SpansTransport ChildSpans = "transport-wrapper"
	SpansDecorator ChildSpans = "span-decorator"
	SpansNone      ChildSpans = "none"

	TestClusterE2E     BackendTest = "cluster-e2e"
	TestIntegrationTag BackendTest = "integration-tag"
	TestManualRunbook  BackendTest = "manual-runbook"
	TestUnit           BackendTest = "unit-tests" // the real backend is there in every test run
)

// Axis is one question of the profile and the provider's answer.
type Axis struct{ Name, Choice string }

// Axes returns every axis with its choice, in the contract's order.
func (p Profile) Axes() []Axis {
	return []Axis{
		{"readiness", string(p.Readiness)},
		{"create-return", string(p.CreateReturn)},
		{"delete-return", string(p.DeleteReturn)},
		{"ip-source", string(p.IPSource)},
		{"gc-mark", string(p.GCMark)},
		{"created-at", string(p.CreatedAt)},
		{"list-partial", string(p.ListPartial)},
		{"quota", string(p.Quota)},
		{"not-found", string(p.NotFound)},
		{"primary-key", string(p.PrimaryKey)},
		{"provisioning-state", string(p.ProvisioningState)},
		{"async-ops", string(p.AsyncOps)},
		{"secondary-resources", string(p.SecondaryResources)},
		{"credentials", string(p.Credentials)},
		{"client-kind", string(p.ClientKind)},
		{"timeouts", string(p.Timeouts)},
		{"logging", string(p.Logging)},
		{"child-spans", string(p.ChildSpans)},
		{"backend-test", string(p.BackendTest)},
	}
}
