package providertest

import (
	"context"
	"testing"
	"time"

	"github.com/egressfleet/egressfleet/providers"
)

// Lab is what a test can do to the backend of a provider. Each is optional: the rows
// that need one that is not there are left out, and Run says so. What returns a
// function has an effect until that is called.
type Lab struct {
	// Reopen returns another provider over the backend of p, as after a restart.
	Reopen func(t *testing.T, p providers.Provider) providers.Provider
	// Neighbour returns another provider over the backend of p, of another installation.
	Neighbour func(t *testing.T, p providers.Provider, installation string) providers.Provider
	// Plant puts instances at the backend of p that are not its own: one without
	// marks, one of another installation. It returns their IDs and removes them at
	// the end of the test.
	Plant func(t *testing.T, p providers.Provider) []string
	// Squat puts an instance at the backend of p under the name of req, marked as Create
	// would have, but for one mark, and removes it at the end of the test. Without the
	// managed mark it is nobody's.
	Squat func(t *testing.T, p providers.Provider, req providers.CreateRequest, missing string)
	// Orphan puts at the backend of p what a create of req makes first, without an
	// instance, so old that no create can still be under way.
	Orphan func(t *testing.T, p providers.Provider, req providers.CreateRequest)
	// Leftovers names everything at the backend that belongs to an instance of that
	// UID, listed or not.
	Leftovers func(t *testing.T, p providers.Provider, uid string) []string
	// Delivered returns the user-data that the guest of an instance gets.
	Delivered func(t *testing.T, p providers.Provider, id string) []byte
	// MaxCloudInit is how many bytes of user-data the backend takes; 0: there is no limit.
	MaxCloudInit int
	// MaxBinaryCloudInit is how many of what is no text, where that is less.
	MaxBinaryCloudInit int
	// Backend lets see be called with the context of every later call of the backend of
	// p, at least once by Create.
	Backend func(t *testing.T, p providers.Provider, see func(context.Context))

	// Unprepare takes away what a Prepare has fetched: creates lack it until another one.
	Unprepare func(t *testing.T, p providers.Provider) (restore func())
	// Break cuts p off from its backend.
	Break func(t *testing.T, p providers.Provider) (heal func())
	// Stall lets the backend of p accept calls and answer none.
	Stall func(t *testing.T, p providers.Provider) (release func())
	// HalfWay lets each Create of p end after it has made something at the backend and
	// before it has made all: by an error of the backend, or by a panic, which leaves
	// what a worker that dies leaves.
	HalfWay func(t *testing.T, p providers.Provider) (heal func())
	// Part is for a backend of which a part can be cut off: a zone, a host.
	Part *Part
	// Mount changes the credential that p is given, where it finds it at the call.
	Mount func(t *testing.T, p providers.Provider, c Credential)
	// Refuse lets the backend refuse the credential of p, which is there and can be read.
	Refuse func(t *testing.T, p providers.Provider) (restore func())
	// Exhaust leaves no capacity for another instance.
	Exhaust func(t *testing.T, p providers.Provider) (restore func())
	// Confuse lets the backend fail every call in a way that looks as if the instance
	// were missing, while it is something else: a route, an image, a gateway's page.
	Confuse func(t *testing.T, p providers.Provider) (restore func())
	// Silence lets the source of addresses know none: no lease, no agent.
	Silence func(t *testing.T, p providers.Provider) (restore func())
	// Lag lets reads of the backend miss an instance for a while after its create.
	Lag func(t *testing.T, p providers.Provider) (restore func())
	// FailLate lets the next create be accepted and fail with the class later.
	FailLate func(t *testing.T, p providers.Provider, class providers.Class)
	// Lock lets a task of the backend hold an instance.
	Lock func(t *testing.T, p providers.Provider, id string) (unlock func())
	// PowerOff stops an instance, as its owner does by hand.
	PowerOff func(t *testing.T, p providers.Provider, id string)
	// Odd lets the backend report a state that no provider knows.
	Odd func(t *testing.T, p providers.Provider, id string)
	// CallWithin says that providers of the profile per-call give a backend call up
	// within that time, by a deadline that the suite has made short.
	CallWithin time.Duration
}

// Part is a part of the backend that can be cut off.
type Part struct {
	Name  string // as Inventory.Omitted says it
	Place func(req *providers.CreateRequest)
	Cut   func(t *testing.T, p providers.Provider) (heal func())
}

// Credential is what a provider finds in the place of its credential.
type Credential int

// What a credential may be.
const (
	CredentialMissing    Credential = iota
	CredentialUnreadable            // there, and it makes no sense
	CredentialRotated               // another than before, the only one that is taken
)

// when returns a rule for rows that fit only some profiles.
func when(fits func(providers.Profile) bool, otherwise string) func(providers.Profile) string {
	return func(p providers.Profile) string {
		if fits(p) {
			return ""
		}
		return otherwise
	}
}
