package proxy

import (
	"fmt"
	"strings"

	"go.temporal.io/sdk/temporal"

	v1 "github.com/egressfleet/egressfleet/api/v1"
)

// Names on the wire. Changing one breaks running workflows and their callers.
const (
	WorkflowType = "Proxy"
	TaskQueue    = "egressfleet"

	UpdateApply   = "apply"
	UpdateDelete  = "delete"
	UpdateReplace = "replace"
	UpdateRetry   = "retry"
	UpdateHold    = "hold"
	UpdateResume  = "resume"

	SignalDelete = "delete"
	SignalHealth = "health"
	SignalHint   = "hint"
	// SignalOpenProxy tells what a stranger meets.
	SignalOpenProxy = "openProxy"

	QueryStatus   = "status"
	QueryTimeline = "timeline"
	// QueryMessages counts the signals taken since the start, over all runs.
	QueryMessages = "messages"

	// MemoProxy holds a v1.Proxy without the content of its user-data: what listing,
	// discovery and liveness need.
	MemoProxy = "proxy"

	// FieldGeneration is what a refusal names where another generation was expected.
	FieldGeneration = "metadata.generation"

	idPrefix = "proxy/"
)

// Error types of the workflow itself and of a refused message; the latter carries a
// Refusal.
const (
	ErrInvalidInput = "InvalidInput"
	ErrInvalid      = "Invalid"  // the message can never be right
	ErrConflict     = "Conflict" // this proxy does not allow it
)

// Refusal is the detail of a refused message. Serialised.
type Refusal struct {
	Field   string `json:"field"`
	Value   string `json:"value"`
	Problem string `json:"problem"`
}

// The search attributes, which the namespace must know before the first start.
// They are never encrypted: no secret, ever.
var (
	attrPhase    = temporal.NewSearchAttributeKeyKeyword("ProxyPhase")
	attrProvider = temporal.NewSearchAttributeKeyKeyword("ProxyProvider")
	attrRegion   = temporal.NewSearchAttributeKeyKeyword("ProxyRegion")
	attrReason   = temporal.NewSearchAttributeKeyKeyword("ProxyReason")
	attrHealthy  = temporal.NewSearchAttributeKeyBool("ProxyHealthy")
	// attrChanged is when the run published last: who follows the fleet lists what is
	// later than what it knows.
	attrChanged = temporal.NewSearchAttributeKeyTime("ProxyChanged")
)

// SearchAttributes lists what the namespace must know.
func SearchAttributes() []temporal.SearchAttributeKey {
	return []temporal.SearchAttributeKey{attrPhase, attrProvider, attrRegion, attrReason, attrHealthy, attrChanged}
}

// LatchedReasons are those with which a proxy that is being deleted waits for another
// configuration of its provider. One that is not is Blocked then.
func LatchedReasons() []string {
	return []string{v1.ReasonProviderNotConfigured, v1.ReasonPermanentError}
}

// LatchedOn returns the query of Visibility for the proxies that wait for another
// configuration of a provider, or for those of them with a reason. The name must be a
// DNS label.
func LatchedOn(provider, reason string) string {
	query := fmt.Sprintf("WorkflowType = '%s' AND ExecutionStatus = 'Running' AND %s = '%s' AND "+
		"(%s = '%s' OR (%s = '%s' AND %s IN ('%s')))",
		WorkflowType, attrProvider.GetName(), provider, attrPhase.GetName(), v1.PhaseBlocked,
		attrPhase.GetName(), v1.PhaseDeleting, attrReason.GetName(), strings.Join(LatchedReasons(), "', '"))
	if reason != "" {
		query += fmt.Sprintf(" AND %s = '%s'", attrReason.GetName(), reason)
	}
	return query
}

// WorkflowID is the only place where the ID is written.
func WorkflowID(namespace, name string) string { return idPrefix + namespace + "/" + name }

// IDPrefix returns what the IDs of a namespace begin with; of every one for "".
func IDPrefix(namespace string) string {
	if namespace == "" {
		return idPrefix
	}
	return idPrefix + namespace + "/"
}

// NamesOf is the only place where the ID is read.
func NamesOf(workflowID string) (namespace, name string, err error) {
	rest, ok := strings.CutPrefix(workflowID, idPrefix)
	namespace, name, two := v1.NamesOf(rest)
	if !ok || !two {
		return "", "", fmt.Errorf("workflow ID: %q is not %s<namespace>/<name> of two DNS labels", workflowID, idPrefix)
	}
	return namespace, name, nil
}
