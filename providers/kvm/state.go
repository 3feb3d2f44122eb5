package kvm

import (
	"time"

	"github.com/digitalocean/go-libvirt"

	"github.com/egressfleet/egressfleet/providers"
)

// startWindow is how long a create may be under way before its traces count as what a crash
// left: about twice the longest one.
const startWindow = 10 * time.Minute

// condition is what is known about a domain besides its address.
type condition struct {
	state, reason int32
	marks         marks
	now           time.Time
}

// verdict is a state of the contract and why.
type verdict struct {
	state  providers.State
	reason string
	runs   bool // whether it may have an address; without one it is Provisioning
}

// judge maps libvirt's state and reason. It is pure. A number that it does not know, of a
// newer libvirt, is Stopped.
func (c condition) judge() verdict {
	switch libvirt.DomainState(c.state) {
	case libvirt.DomainNostate:
		return verdict{state: providers.StateProvisioning, reason: "libvirt knows no state yet"}
	case libvirt.DomainRunning, libvirt.DomainBlocked:
		return verdict{state: providers.StateRunning, runs: true}
	case libvirt.DomainPaused:
		return c.paused()
	case libvirt.DomainShutdown:
		return stopped("the guest is shutting down")
	case libvirt.DomainShutoff:
		return c.shutoff()
	case libvirt.DomainCrashed:
		return stopped("the guest has crashed")
	case libvirt.DomainPmsuspended:
		return stopped("the guest has suspended itself")
	default:
		return stopped("libvirt reports a state that is not known here: " + numbers(c.state, c.reason))
	}
}

func stopped(reason string) verdict { return verdict{state: providers.StateStopped, reason: reason} }

// paused tells a guest that libvirt holds for a moment from one that nothing resumes.
func (c condition) paused() verdict {
	switch libvirt.DomainPausedReason(c.reason) {
	case libvirt.DomainPausedStartingUp:
		return verdict{state: providers.StateProvisioning, reason: "it is being started"}
	case libvirt.DomainPausedMigration, libvirt.DomainPausedDump, libvirt.DomainPausedSnapshot,
		libvirt.DomainPausedPostcopy:
		return verdict{state: providers.StateProvisioning, reason: "paused while libvirt works on it"}
	case libvirt.DomainPausedIoerror:
		return stopped("paused by an I/O error: the pool or the disk of the host may be full")
	case libvirt.DomainPausedUser:
		return stopped("paused by an administrator")
	case libvirt.DomainPausedWatchdog:
		return stopped("paused by its watchdog")
	case libvirt.DomainPausedCrashed:
		return stopped("paused: the guest has crashed")
	case libvirt.DomainPausedShuttingDown:
		return stopped("the guest is shutting down")
	default:
		return stopped("paused: " + numbers(c.state, c.reason))
	}
}

// shutoff asks the marker where libvirt itself cannot tell: a domain that was never started
// and one that ran before libvirtd was restarted have the same reason.
func (c condition) shutoff() verdict {
	switch libvirt.DomainShutoffReason(c.reason) {
	case libvirt.DomainShutoffUnknown:
		return c.neverStarted()
	case libvirt.DomainShutoffShutdown:
		return stopped("the guest has shut down")
	case libvirt.DomainShutoffDestroyed:
		return stopped("switched off by an administrator")
	case libvirt.DomainShutoffCrashed:
		return stopped("its QEMU process has ended")
	case libvirt.DomainShutoffMigrated:
		return stopped("migrated to another host by an administrator")
	case libvirt.DomainShutoffSaved:
		return stopped("its memory was saved to disk")
	case libvirt.DomainShutoffFailed:
		return stopped("its start has failed")
	case libvirt.DomainShutoffFromSnapshot:
		return stopped("put back to a snapshot by an administrator")
	case libvirt.DomainShutoffDaemon:
		return stopped("libvirt lost it when it was restarted")
	default:
		return stopped("shut off: " + numbers(c.state, c.reason))
	}
}

func (c condition) neverStarted() verdict {
	switch since := c.marks.startingSince(); {
	case c.marks.Phase != phaseStarting:
		return stopped("shut off; libvirt does not know why any more")
	case !since.IsZero() && c.now.Sub(since) >= startWindow:
		return stopped("it was defined and never started")
	}
	return verdict{state: providers.StateProvisioning, reason: "it is defined, and not started yet"}
}
