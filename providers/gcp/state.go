package gcp

import (
	"net/netip"
	"time"

	"cloud.google.com/go/compute/apiv1/computepb"

	"github.com/egressfleet/egressfleet/providers"
)

// The states of an instance that the client has no name for yet come as its zero value.
// https://cloud.google.com/compute/docs/instances/instance-lifecycle

// stateOf returns the state of an instance, with a reason where it does not run.
func stateOf(i *computepb.Instance, address string) (providers.State, string) {
	status := i.GetStatus()
	switch status {
	case "PENDING", "PROVISIONING", "STAGING":
		return providers.StateProvisioning, "the instance is " + status
	case "REPAIRING": // Compute Engine mends it by itself
		return providers.StateProvisioning, "the instance is REPAIRING: its host has failed, and it is moved"
	case "RUNNING":
		if address == "" {
			return providers.StateProvisioning, "the instance is RUNNING and has no address yet"
		}
		return providers.StateRunning, ""
	case "TERMINATED":
		return providers.StateTerminated, ended(i, status)
	}
	return providers.StateStopped, ended(i, status)
}

// ended says why an instance does not run any more, as far as it can be told.
func ended(i *computepb.Instance, status string) string {
	why := "the instance is " + status
	if text := i.GetStatusMessage(); text != "" {
		why += ": " + text
	}
	if i.GetScheduling().GetProvisioningModel() == provisioningSpot && status != "SUSPENDED" && status != "SUSPENDING" {
		why += " (a spot instance, which Google may take back at any time)"
	}
	return why
}

const provisioningSpot = "SPOT"

// addressOf returns the address that is reported. An external one may sit on any
// interface; the internal one is that of the first.
func addressOf(i *computepb.Instance, addressing string) string {
	for _, card := range i.GetNetworkInterfaces() {
		if addressing == addressingInternal {
			return valid(card.GetNetworkIP())
		}
		for _, access := range card.GetAccessConfigs() {
			if ip := valid(access.GetNatIP()); ip != "" {
				return ip
			}
		}
	}
	return ""
}

func valid(ip string) string {
	if _, err := netip.ParseAddr(ip); err != nil {
		return ""
	}
	return ip
}

// egressOf is the address that targets see: the external one, if there is one. Without,
// a gateway decides, which the instance does not know.
func egressOf(i *computepb.Instance) string { return addressOf(i, addressingExternal) }

// view makes the instance that the contract knows.
func view(at place, i *computepb.Instance, addressing string, deleting bool) providers.Instance {
	labels, metadata := i.GetLabels(), items(i)
	address := addressOf(i, addressing)
	state, why := stateOf(i, address)
	whose := holder(labels, metadata)
	out := providers.Instance{
		ID: at.id(), State: state, Reason: why, Deleting: deleting,
		UID: whose.UID, Installation: whose.Installation,
		Owner: metadata[providers.MarkOwner], SpecMark: metadata[providers.MarkSpec],
		CreatedAt: timestamp(i.GetCreationTimestamp()),
	}
	if state == providers.StateRunning {
		out.IP, out.EgressIP = address, egressOf(i)
	}
	if deleting && out.Reason == "" {
		out.Reason = "the instance is being deleted"
	}
	return out
}

// remains is how a disk whose instance is gone is shown: it has the name, and the next
// create would meet it.
func remains(at place, d *computepb.Disk) providers.Instance {
	whose := diskHolder(d)
	return providers.Instance{
		ID: at.id(), State: providers.StateTerminated, Reason: "the instance is gone, and its disk is left",
		UID: whose.UID, Installation: whose.Installation, Owner: described(d)[providers.MarkOwner],
		CreatedAt: timestamp(d.GetCreationTimestamp()),
	}
}

// items are the metadata of an instance by key.
func items(i *computepb.Instance) map[string]string {
	all := map[string]string{}
	for _, item := range i.GetMetadata().GetItems() {
		all[item.GetKey()] = item.GetValue()
	}
	return all
}

// leaving reports whether an instance is on its way out by itself, so that a delete sent
// now would be one of a storm.
func leaving(i *computepb.Instance) bool {
	switch i.GetStatus() {
	case "STOPPING", "DEPROVISIONING", "PENDING_STOP":
		return true
	}
	return false
}

// old reports whether a resource was there before the time.
func old(created string, before time.Time) bool {
	at := timestamp(created)
	return !at.IsZero() && at.Before(before)
}
