package v1

import "time"

// Condition is one named truth about a Proxy.
type Condition struct {
	Type    string          `json:"type"`
	Status  ConditionStatus `json:"status"`
	Reason  string          `json:"reason"` // one CamelCase word
	Message string          `json:"message,omitempty"`
	// LastTransitionTime is when status or reason last changed.
	LastTransitionTime time.Time `json:"lastTransitionTime"`
}

// ConditionStatus is the value of a condition.
type ConditionStatus string

// The values of a condition.
const (
	ConditionTrue    ConditionStatus = "True"
	ConditionFalse   ConditionStatus = "False"
	ConditionUnknown ConditionStatus = "Unknown"
)

// The types of conditions.
const (
	ConditionProvisioned = "Provisioned"
	ConditionHealthy     = "Healthy"
	ConditionHeld        = "Held"
	ConditionDeleting    = "Deleting"
	ConditionOpenProxy   = "OpenProxy"
	// ConditionAdopted is true of a Proxy that was brought back from the marks of its
	// instance, until its spec is applied again.
	ConditionAdopted = "Adopted"
)

// The reasons of Provisioned and Deleting.
const (
	ReasonCreated               = "Created"
	ReasonProvisioning          = "Provisioning"
	ReasonQuotaExceeded         = "QuotaExceeded"
	ReasonPermanentError        = "PermanentError"
	ReasonTransientError        = "TransientError"
	ReasonCreateFailed          = "CreateFailed"
	ReasonProviderNotConfigured = "ProviderNotConfigured"
	ReasonProvisioningTimeout   = "ProvisioningTimeout"
	ReasonInstanceLost          = "InstanceLost"
	ReasonInstanceStopped       = "InstanceStopped"
	ReasonInstanceTerminated    = "InstanceTerminated"
	ReasonReplacing             = "Replacing"
	ReasonForeignInstance       = "ForeignInstance"
	ReasonNotPrepared           = "NotPrepared"
	ReasonInProgress            = "InProgress"
	ReasonStuckDeleting         = "StuckDeleting"
	ReasonLeftBehind            = "LeftBehind"
	// ReasonCloudInitUnknown is one of Adopted, too.
	ReasonCloudInitUnknown = "CloudInitUnknown"
)

// The reason of Adopted where nothing of what makes an instance is missing.
const ReasonFromMarks = "FromMarks"

// The reasons of Healthy, which are the verdicts of a probe.
const (
	ReasonHealthy        = "Healthy"
	ReasonUnreachable    = "Unreachable"
	ReasonAuthRequired   = "AuthRequired"
	ReasonRefused        = "Refused"
	ReasonTLSIntercepted = "TLSIntercepted"
	ReasonBadResponse    = "BadResponse"
	ReasonNoEgress       = "NoEgress"
	ReasonInconclusive   = "Inconclusive"
	ReasonNoTarget       = "NoTarget"
	ReasonNotProbed      = "NotProbed"
)

// The reasons of OpenProxy, besides Inconclusive and NoTarget.
const (
	ReasonOpenProxy      = "OpenProxy"
	ReasonClosed         = "Closed"
	ReasonNoSecondProber = "NoSecondProber"
)

// NoSecondProber is the condition OpenProxy of a proxy that nobody has looked at from
// outside, as it is shown where there is none. It has no time: nothing changed.
func NoSecondProber() Condition {
	return Condition{
		Type: ConditionOpenProxy, Status: ConditionUnknown, Reason: ReasonNoSecondProber,
		Message: "no second prober has tried it from an address that is none of its clients'",
	}
}

// Condition returns the condition of a type, and whether there is one.
func (s ProxyStatus) Condition(kind string) (Condition, bool) {
	for _, c := range s.Conditions {
		if c.Type == kind {
			return c, true
		}
	}
	return Condition{}, false
}

// SetCondition puts c in the place of the condition of its type. The transition
// time moves to now only when status or reason change.
func (s *ProxyStatus) SetCondition(now time.Time, c Condition) {
	c.LastTransitionTime = now
	for i, was := range s.Conditions {
		if was.Type != c.Type {
			continue
		}
		if was.Status == c.Status && was.Reason == c.Reason {
			c.LastTransitionTime = was.LastTransitionTime
		}
		s.Conditions[i] = c
		return
	}
	s.Conditions = append(s.Conditions, c)
}

// DropCondition removes the condition of a type.
func (s *ProxyStatus) DropCondition(kind string) {
	for i, c := range s.Conditions {
		if c.Type == kind {
			s.Conditions = append(s.Conditions[:i], s.Conditions[i+1:]...)
			return
		}
	}
}
