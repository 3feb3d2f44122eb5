// Package providertest checks that a providers.Provider meets the contract: one row
// for every MUST that can be seen through the interface, each naming the section
// and the caller that breaks. It asks the provider's Profile what to expect.
// A row about the process that a provider runs in is run in one of its own (apart.go).
// Start reading at Suite; rows.go is the table, mutants_test.go proves that it bites.
package providertest

import (
	"cmp"
	"fmt"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/egressfleet/egressfleet/providers"
)

// Suite describes a provider under test. New and Installation are required; a row
// that needs a hook of Lab which is not there is left out, and Run says so.
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
	// ListsState says that the list shows state and address as Get does. Where a listing
	// lacks them, and each would be a call of its own, they may be empty there.
	ListsState bool

	// Lab is what a test can do to the backend.
	Lab Lab

	RunningWithin time.Duration // from Create to Running; 30 s unless set
	GoneWithin    time.Duration // from Delete to NotFound; 30 s unless set
	PromptWithin  time.Duration // from the end of a context to the answer; 2 s unless set
	Poll          time.Duration // between two looks; 20 ms unless set
}

// Run runs every row that fits the provider as a subtest named after it, and returns
// the names of those that ran.
func (s Suite) Run(t *testing.T) (ran []string) {
	profile := profileOf(t, s.New(t))
	for _, row := range Rows() {
		if elsewhere(row.Name) {
			continue
		}
		if why := s.LeftOut(row, profile); why != "" {
			t.Log(why)
			continue
		}
		ran = append(ran, row.Name)
		t.Run(row.Name, func(t *testing.T) {
			t.Cleanup(func() {
				if t.Failed() {
					t.Logf("contract §%s; breaks: %s; reported: %v", row.Section, row.Breaks, row.Reports)
				}
			})
			row.on(newScene(t, t, s))
		})
	}
	return ran
}

// LeftOut says why a row says nothing about a provider of that profile; "" when it
// does. tools/contract reads it: a row that needs something is one that a guide explains.
func (s Suite) LeftOut(row Row, profile providers.Profile) string {
	if row.applies != nil {
		if why := row.applies(profile); why != "" {
			return fmt.Sprintf("%s does not fit the profile: %s", row.Name, why)
		}
	}
	for need := range strings.FieldsSeq(row.Needs) {
		if s.lacks(need) {
			return fmt.Sprintf("%s is not checked: it needs Suite.%s", row.Name, need)
		}
	}
	return ""
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
			return record(t, func(r *recorder) { row.on(newScene(r, t, s)) })
		}
	}
	t.Fatalf("there is no row %q", name)
	return nil
}

// lacks reports whether the suite does not have the field that a row needs. A field
// that Suite does not have at all is a mistake in the row.
func (s Suite) lacks(field string) bool {
	v := reflect.ValueOf(s)
	for name := range strings.SplitSeq(field, ".") {
		v = v.FieldByName(name)
	}
	return v.IsZero()
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
