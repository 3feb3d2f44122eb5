// Package providertest checks that a providers.Provider meets the contract: one row
// for every MUST that can be seen through the interface, each naming the section
// and the caller that breaks. It asks the provider's Profile what to expect.
// A row about the process that a provider runs in is run in one of its own (apart.go).
// Start reading at Suite; rows.go is the table, mutants_test.go proves that it bites.
package providertest

import (
	"cmp"
	"context"
	"reflect"
	"testing"
	"time"

	"github.com/egressfleet/egressfleet/providers"
)

// Suite describes a provider under test. New and Installation are required; a row
// that needs a hook which is not there is left out, and Run says so.
type Suite struct {
	// New returns a provider, once for every row, and cleans up after itself. The
	// backend may be shared: every row uses names of its own.
	New func(t *testing.T) providers.Provider
	// Installation is what New's providers were configured with.
	Installation string
	// Name is what they were configured with; empty: any name will do.
	Name string
	// Request completes a request with what the backend needs: a placement, a port.
	Request func(t *testing.T, req *providers.CreateRequest)
	// Secrets are credentials that the provider was given and never shows. One of fewer
	// than eight characters is not found in every encoding.
	Secrets []string

	// Checker and Inventory say that the provider has these optional interfaces: it is
	// then an error when As does not find them.
	Checker, Inventory bool

	// Reopen returns another provider over the backend of p, as after a restart.
	Reopen func(t *testing.T, p providers.Provider) providers.Provider
	// Plant puts instances at the backend of p that are not its own: one without
	// marks, one of another installation. It returns their IDs and removes them at
	// the end of the test.
	Plant func(t *testing.T, p providers.Provider) []string
	// Break cuts p off from its backend until the returned function is called.
	Break func(t *testing.T, p providers.Provider) (heal func())
	// Stall lets the backend of p accept calls and answer none until the returned
	// function is called.
	Stall func(t *testing.T, p providers.Provider) (release func())
	// Leftovers names everything at the backend that belongs to an instance of that
	// UID, listed or not.
	Leftovers func(t *testing.T, p providers.Provider, uid string) []string

	// Squat puts an instance at the backend of p under the name of req, marked as Create
	// would have, but for one mark, and removes it at the end of the test. Without the
	// managed mark it is nobody's.
	Squat func(t *testing.T, p providers.Provider, req providers.CreateRequest, missing string)
	// Neighbour returns another provider over the backend of p, of another installation.
	Neighbour func(t *testing.T, p providers.Provider, installation string) providers.Provider
	// Backend lets see be called with the context of every later call of the backend of
	// p, at least once by Create.
	Backend func(t *testing.T, p providers.Provider, see func(context.Context))
	// Delivered returns the user-data that the guest of an instance gets.
	Delivered func(t *testing.T, p providers.Provider, id string) []byte
	// MaxCloudInit is how many bytes of user-data the backend takes; 0: there is no limit.
	MaxCloudInit int
	// FailHalfway lets each create at p fail once it has made its first secondary
	// resource, or whatever comes first, until the returned function is called.
	FailHalfway func(t *testing.T, p providers.Provider) (heal func())
	// Orphan puts at the backend of p what a create of req makes first, without an
	// instance, so old that no create can still be under way.
	Orphan func(t *testing.T, p providers.Provider, req providers.CreateRequest)

	RunningWithin time.Duration // from Create to Running; 30 s unless set
	GoneWithin    time.Duration // from Delete to NotFound; 30 s unless set
	PromptWithin  time.Duration // from the end of a context to the answer; 2 s unless set
	Poll          time.Duration // between two looks; 20 ms unless set
}

// Run runs every row as a subtest named after it.
func (s Suite) Run(t *testing.T) {
	for _, row := range Rows() {
		if elsewhere(row.Name) {
			continue
		}
		if s.lacks(row.Needs) {
			t.Logf("%s is not checked: it needs Suite.%s", row.Name, row.Needs)
			continue
		}
		t.Run(row.Name, func(t *testing.T) {
			t.Cleanup(func() {
				if t.Failed() {
					t.Logf("contract §%s; breaks: %s; reported: %v", row.Section, row.Breaks, row.Reports)
				}
			})
			row.run(newScene(t, t, s))
		})
	}
}

// Failures runs one row and returns what it found wrong, without failing t. It is
// for tests of the suite itself.
func (s Suite) Failures(t *testing.T, name string) []string {
	t.Helper()
	if elsewhere(name) {
		return nil
	}
	for _, row := range Rows() {
		if row.Name == name {
			return record(t, func(r *recorder) { row.run(newScene(r, t, s)) })
		}
	}
	t.Fatalf("there is no row %q", name)
	return nil
}

// lacks reports whether the suite does not have the field that a row needs.
func (s Suite) lacks(field string) bool {
	return field != "" && reflect.ValueOf(s).FieldByName(field).IsZero()
}

// The bounds where a suite sets none. They are generous for a backend on the same
// machine, and no guess about any other: such a suite sets its own.
const (
	defaultWithin = 30 * time.Second
	defaultPrompt = 2 * time.Second
	defaultPoll   = 20 * time.Millisecond
)

func (s Suite) withDefaults() Suite {
	s.RunningWithin = cmp.Or(s.RunningWithin, defaultWithin)
	s.GoneWithin = cmp.Or(s.GoneWithin, defaultWithin)
	s.PromptWithin = cmp.Or(s.PromptWithin, defaultPrompt)
	s.Poll = cmp.Or(s.Poll, defaultPoll)
	return s
}
