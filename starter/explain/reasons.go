package explain

import (
	"maps"

	v1 "github.com/egressfleet/egressfleet/api/v1"
)

// account is what there is to say about a reason.
type account struct {
	why string // without the dot at its end
	// fails: the condition's message tells what went wrong.
	fails bool
	// help is what a person could do; empty for nothing.
	help string
}

// lookUp returns what there is to say about a reason of a condition.
func lookUp(condition, reason string) (account, bool) {
	a, known := accounts()[condition][reason]
	return a, known
}

func isReason(reason string) bool {
	for _, of := range accounts() {
		if _, known := of[reason]; known {
			return true
		}
	}
	return false
}

// accounts has every reason of every condition; of Held, whose reason is a person's
// own, there is none.
func accounts() map[string]map[string]account {
	return map[string]map[string]account{
		v1.ConditionProvisioned: provisioned(), v1.ConditionDeleting: deleting(),
		v1.ConditionHealthy: healthy(), v1.ConditionOpenProxy: openProxy(),
		v1.ConditionAdopted: adopted(),
	}
}

func provisioned() map[string]account {
	all := map[string]account{
		v1.ReasonCreated:      {why: "The instance was made, and is as the spec wants it"},
		v1.ReasonProvisioning: {why: "The backend is making the instance, or has just been asked to"},
		v1.ReasonCreateFailed: {
			why: "The backend took the create, and it failed there later", fails: true,
			help: "Look whether the backend can make what spec.placement asks for.",
		},
		v1.ReasonProvisioningTimeout: {
			why: "It takes longer than deadlines.provisioning of the spec allows; that stops no work", fails: true,
			help: "Look at the instance's own console, or at the backend: nothing here can hurry it.",
		},
		v1.ReasonInstanceLost: {
			why: "The backend does not show the instance any more, and nobody here removed it", fails: true,
		},
		v1.ReasonInstanceStopped:    {why: "The instance was stopped, which nobody here asked for", fails: true},
		v1.ReasonInstanceTerminated: {why: "The backend has ended the instance, as it does with spot instances", fails: true},
		v1.ReasonReplacing: {
			why: "The instance is to make room for another one: the spec changed, or somebody asked for it",
		},
		v1.ReasonNotPrepared: {
			why: "The backend lacks something large that the create needs, and it is being fetched", fails: true,
		},
		v1.ReasonCloudInitUnknown: {
			why:   "An instance is needed and none can be made: it was adopted, and of its cloud-init only the digest is known",
			fails: true, help: "Apply its spec again, with the cloud-init.",
		},
	}
	maps.Copy(all, failures())
	return all
}

// failures are the reasons that living and deleting proxies share.
func failures() map[string]account {
	return map[string]account{
		v1.ReasonQuotaExceeded: {
			why: "The backend has no room or no quota left for it", fails: true,
			help: "Raise the quota, free some of it, or choose another spec.placement.",
		},
		v1.ReasonPermanentError: {
			why: "The backend refuses, and would refuse again", fails: true,
			help: "Correct what it names: the spec (apply), or the provider's entry and credentials in the providers file.",
		},
		v1.ReasonTransientError: {
			why: "The backend could not be asked, or did not answer well", fails: true,
			help: "If it lasts, \"starter check run\" asks every backend whether it could be used.",
		},
		v1.ReasonProviderNotConfigured: {
			why: "No worker knows a provider of the name in spec.provider", fails: true,
			help: "Add it to the providers file of the workers; \"starter providers\" lists what they know.",
		},
		v1.ReasonForeignInstance: {
			why: "An instance of somebody else has the name that its own would have; it is not touched", fails: true,
			help: "Remove or rename the other one at the backend, then \"starter retry\".",
		},
	}
}

func deleting() map[string]account {
	all := map[string]account{
		v1.ReasonInProgress: {why: "Somebody asked for the delete, and the backend is removing the instance"},
		v1.ReasonStuckDeleting: {
			why: "The removal takes longer than deadlines.delete of the spec allows; that stops no work", fails: true,
			help: "Where the backend is gone for good, \"starter delete NAME --skip-cleanup --reason WHY\" " +
				"ends the proxy all the same.",
		},
		v1.ReasonLeftBehind: {
			why: "It ends without its backend, as somebody wanted, and what is there was not looked at", fails: true,
			help: "\"starter gc plan\" lists it once the backend can be reached.",
		},
	}
	maps.Copy(all, failures())
	return all
}

func healthy() map[string]account {
	return map[string]account{
		v1.ReasonHealthy:     {why: "A probe reached its target through it, by TLS"},
		v1.ReasonUnreachable: {why: "A probe could not reach it, or it did not answer", fails: true},
		v1.ReasonAuthRequired: {
			why: "It asks the prober for a login", fails: true, help: "Set or correct spec.healthCheck.proxyAuthRef.",
		},
		v1.ReasonRefused: {
			why: "It denies the probe", fails: true,
			help: "Let the prober's address and the target's port in, in the proxy's own rules.",
		},
		v1.ReasonTLSIntercepted: {
			why: "Somebody ends TLS between it and the target: the certificate is not the target's", fails: true,
			help: "Do not use it before you know who.",
		},
		v1.ReasonBadResponse: {
			why: "What listens at its address does not answer as a proxy does", fails: true,
			help: "Look whether its address has gone to somebody else.",
		},
		v1.ReasonNoEgress: {
			why: "It takes requests and cannot reach the target, which answers directly", fails: true,
			help: "Look at its route, its name server and its firewall.",
		},
		v1.ReasonInconclusive: {
			why: "The last probe says nothing about it: the target or the prober is at fault", fails: true,
		},
		v1.ReasonNoTarget: {
			why: "There is no target to probe it with", help: "Set health.target for its provider, or spec.healthCheck.target.",
		},
		v1.ReasonNotProbed: {why: "No probe has looked at this instance yet"},
	}
}

func openProxy() map[string]account {
	return map[string]account{
		v1.ReasonOpenProxy: {
			why: "It lets strangers in: an address that is no client's was served", fails: true,
			help: "Close it in the proxy's own rules; docs/runbooks/open-proxy.md says how.",
		},
		v1.ReasonClosed:         {why: "It does not serve strangers"},
		v1.ReasonNoSecondProber: {why: "Whether it lets strangers in is not known, as there is no second prober"},
		v1.ReasonInconclusive:   {why: "Whether it lets strangers in is not known: the last try says nothing", fails: true},
		v1.ReasonNoTarget:       {why: "Whether it lets strangers in is not known, as there is no target to ask for"},
	}
}

func adopted() map[string]account {
	return map[string]account{
		v1.ReasonFromMarks: {
			why:  "It was brought back from the marks of its instance, which hold no labels, health check and deadlines",
			help: "Apply its spec again; that replaces nothing unless the spec is another one.",
		},
		v1.ReasonCloudInitUnknown: {
			why: "It was brought back from the marks of its instance, and of its cloud-init only the digest is known: " +
				"no other instance can be made",
			help: "Apply its spec again, with the cloud-init; that replaces nothing unless the spec is another one.",
		},
	}
}
