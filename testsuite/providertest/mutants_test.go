package providertest_test

import (
	"maps"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/egressfleet/egressfleet/providers"
	"github.com/egressfleet/egressfleet/testsuite/fake"
	"github.com/egressfleet/egressfleet/testsuite/providertest"
)

// mutant is a provider with one fault, and the row that catches it.
type mutant struct {
	row   string
	says  string // in the row's failure
	opts  []fake.Option
	twist func(*twisted)
}

// mutantBounds end the rows that wait in vain. They only have to be longer than what a
// busy machine makes of a call in memory.
const mutantBounds = 300 * time.Millisecond

// TestEveryMutantIsCaught proves that the suite bites.
func TestEveryMutantIsCaught(t *testing.T) {
	t.Parallel()
	for name, m := range mutants() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := suite(func(f *fake.Faults) providers.Provider {
				w := straight(f)
				m.twist(w)
				return w
			}, m.opts...)
			s.RunningWithin, s.GoneWithin, s.PromptWithin = mutantBounds, mutantBounds, mutantBounds
			failures := strings.Join(s.Failures(t, m.row), "\n")
			require.NotEmpty(t, failures, "row %s does not catch it", m.row)
			require.Contains(t, failures, m.says)
		})
	}
}

// TestEveryRowHasAMutant keeps rows from being added that nothing can fail.
func TestEveryRowHasAMutant(t *testing.T) {
	t.Parallel()
	caught := map[string]bool{}
	for _, m := range mutants() {
		caught[m.row] = true
	}
	for _, row := range providertest.Rows() {
		require.True(t, caught[row.Name], "row %s has no mutant", row.Name)
		require.NotEmpty(t, row.Section, row.Name)
		require.NotEmpty(t, row.Breaks, row.Name)
		for _, report := range row.Reports {
			require.Regexp(t, `^[\w-]+/[\w-]+#[1-9][0-9]*$`, report, row.Name)
		}
	}
}

// TestAMutantWithoutAFaultPasses shows that mutants are caught for their fault.
func TestAMutantWithoutAFaultPasses(t *testing.T) {
	t.Parallel()
	s := suite(func(f *fake.Faults) providers.Provider { return straight(f) })
	for _, row := range providertest.Rows() {
		require.Empty(t, s.Failures(t, row.Name), row.Name)
	}
}

func mutants() map[string]mutant {
	all := map[string]mutant{}
	for _, part := range []map[string]mutant{
		createMutants(), identityMutants(), getMutants(), deleteMutants(), listMutants(), callMutants(), checkMutants(),
		concurrencyMutants(), overlapMutants(), adoptionMutants(), secretMutants(), dutyMutants(), payloadMutants(),
		secondaryMutants(),
	} {
		maps.Copy(all, part)
	}
	return all
}

// dyingIsNotFound believes that an instance is gone once it is being deleted.
// adopting turns a refusal for a foreign instance into success.
// pedantic deletes only what is there.
// awaitLater is a call that takes far longer than a prompt one may.
// runtimeYield lets calls that began together overlap.
