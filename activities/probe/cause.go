package probe

import v1 "github.com/egressfleet/egressfleet/api/v1"

// Cause is what one attempt ran into. A verdict follows from it and from what the
// control probe saw.
type Cause string

// The causes. Serialised: add some, never rename one.
const (
	CauseNone Cause = "" // the tunnel stands, and TLS is verified to the target

	CauseNotListening Cause = "not_listening" // the proxy's host refuses the connection
	CauseNotReachable Cause = "not_reachable" // no TCP within the deadline, or no route
	CauseNoResponse   Cause = "no_response"   // closed without a byte
	CauseTimeout      Cause = "timeout"       // connected, and no byte within the deadline

	CauseAuthRequired Cause = "proxy_auth_required"
	CauseDenied       Cause = "proxy_denied"
	CauseBadResponse  Cause = "bad_response" // not HTTP, cut off, too long, or no answer to CONNECT

	CauseTLSMismatch Cause = "tls_mismatch"   // the certificate is not the target's
	CauseNotTLS      Cause = "target_not_tls" // the tunnel carries something else

	CauseTargetDNS         Cause = "target_dns"         // the proxy could not resolve the target
	CauseTargetUnreachable Cause = "target_unreachable" // the proxy could not connect to it
	CauseTunnelClosed      Cause = "tunnel_closed"      // opened, then closed or silent before TLS stood

	CauseBadRequest Cause = "bad_request" // the proxy finds fault with our request
	CauseOurs       Cause = "ours"        // cut short, or the prober lacks what it needs
	CauseNoTarget   Cause = "no_target"
)

// rule is what a cause means.
type rule struct {
	reason string // one of the reasons of the condition Healthy
	// excused: a target that cannot be reached directly either may be behind it. Then
	// nobody is blamed. What a proxy says about itself is never excused by a target.
	excused bool
	hint    string // what to look at
}

// rules is the table from causes to verdicts.
func rules() map[Cause]rule {
	return map[Cause]rule{
		CauseNone: {reason: v1.ReasonHealthy},

		CauseNotListening: {reason: v1.ReasonUnreachable, hint: "nothing listens on the proxy's port"},
		CauseNotReachable: {
			reason: v1.ReasonUnreachable, excused: true,
			hint: "port not reachable from prober: look at firewalls between the two",
		},
		CauseNoResponse: {reason: v1.ReasonUnreachable, excused: true, hint: "the port is open and the proxy is not well"},
		CauseTimeout:    {reason: v1.ReasonUnreachable, excused: true, hint: "the port is open and the proxy hangs"},

		CauseAuthRequired: {reason: v1.ReasonAuthRequired, hint: "set or correct spec.healthCheck.proxyAuthRef"},
		CauseDenied:       {reason: v1.ReasonRefused, hint: "the proxy's rules must allow the prober and the target's port"},
		CauseBadResponse:  {reason: v1.ReasonBadResponse, hint: "what listens there may be no proxy"},

		CauseTLSMismatch: {
			reason: v1.ReasonTLSIntercepted, excused: true, hint: "somebody else ends TLS between the proxy and the target",
		},
		// A target that speaks TLS directly cannot be why a tunnel to it carries something else.
		CauseNotTLS: {reason: v1.ReasonBadResponse, excused: true, hint: "what comes through the tunnel is not TLS"},

		CauseTargetDNS:         {reason: v1.ReasonNoEgress, excused: true, hint: "the proxy cannot resolve the target"},
		CauseTargetUnreachable: {reason: v1.ReasonNoEgress, excused: true, hint: "the proxy cannot connect to the target"},
		CauseTunnelClosed:      {reason: v1.ReasonNoEgress, excused: true, hint: "the tunnel carries nothing"},

		CauseBadRequest: {reason: v1.ReasonInconclusive, hint: "the proxy does not understand the probe"},
		CauseOurs:       {reason: v1.ReasonInconclusive, hint: "the fault is the prober's"},
		CauseNoTarget:   {reason: v1.ReasonNoTarget, hint: "set health.target for this provider"},
	}
}

// Excused reports whether the target may be behind a cause, so that it needs a control
// probe.
func (c Cause) Excused() bool { return rules()[c].excused }

// reasonOf returns the verdict's reason; direct says whether the control probe reached
// the target.
func reasonOf(c Cause, direct bool) string {
	r, known := rules()[c]
	if !known || r.excused && !direct {
		return v1.ReasonInconclusive
	}
	return r.reason
}

// Blame is whom a verdict speaks of.
type Blame string

// Whom a verdict may blame.
const (
	BlameNobody        Blame = ""
	BlameProxy         Blame = "proxy"
	BlameConfiguration Blame = "proxy's configuration"
	BlameNetwork       Blame = "proxy or network"
	BlameEgress        Blame = "proxy's egress"
)

// BlameOf returns whom a reason of the condition Healthy blames.
func BlameOf(reason string) Blame {
	switch reason {
	case v1.ReasonUnreachable, v1.ReasonBadResponse:
		return BlameProxy
	case v1.ReasonAuthRequired, v1.ReasonRefused:
		return BlameConfiguration
	case v1.ReasonTLSIntercepted:
		return BlameNetwork
	case v1.ReasonNoEgress:
		return BlameEgress
	default:
		return BlameNobody
	}
}
