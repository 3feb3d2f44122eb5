package providertest_test

import (
	"maps"
	"slices"
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
	says  string   // in the row's failure
	also  []string // other rows that are right to fail for it
	opts  []fake.Option
	twist func(*twisted)
}

// mutantBounds end the rows that wait in vain. They only have to be longer than what
// the fake needs to move on: the time is not the machine's.
const mutantBounds = 300 * time.Millisecond

// TestEveryMutantIsCaught proves that the suite bites: of all rows exactly the named
// one fails, and those that are declared.
func TestEveryMutantIsCaught(t *testing.T) {
	t.Parallel()
	for name, m := range mutants() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := m.suite()
			failed := []string{}
			declared := append([]string{m.row}, m.also...)
			for _, row := range providertest.Rows() {
				left := s.LeftOut(row, m.profile(t, s)) != ""
				if left || row.Apart && !slices.Contains(declared, row.Name) { // a process each takes too long
					continue
				}
				found := failures(t, s, row.Name)
				if len(found) > 0 {
					failed = append(failed, row.Name)
				}
				if row.Name == m.row {
					require.NotEmpty(t, found, "row %s does not catch it", m.row)
					require.Contains(t, strings.Join(found, "\n"), m.says)
				}
			}
			require.Subset(t, failed, declared)
			require.Subset(t, append(declared, atOnce()...), failed)
		})
	}
}

func (m mutant) suite() providertest.Suite {
	return reference(func(f *fake.Faults) providers.Provider {
		w := straight(f)
		m.twist(w)
		return w
	}, m.opts...)
}

// profile is what the mutant says of itself.
func (m mutant) profile(t *testing.T, s providertest.Suite) providers.Profile {
	t.Helper()
	profiler, ok := providers.As[providers.Profiler](s.New(t))
	require.True(t, ok)
	return profiler.Profile()
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
	m := mutant{twist: func(*twisted) {}}
	s := m.suite()
	for _, row := range providertest.Rows() {
		if s.LeftOut(row, plainProfile()) == "" {
			require.Empty(t, failures(t, s, row.Name), row.Name)
		}
	}
}

// TestMutantsNameRowsThatAreThere keeps a row that was renamed from being forgotten.
func TestMutantsNameRowsThatAreThere(t *testing.T) {
	t.Parallel()
	rows := []string{}
	for _, row := range providertest.Rows() {
		require.NotContains(t, rows, row.Name, "two rows have one name")
		rows = append(rows, row.Name)
	}
	for name, m := range mutants() {
		require.Subset(t, rows, append([]string{m.row}, m.also...), name)
	}
	require.Subset(t, rows, atOnce())
}

// atOnce are the rows whose calls overlap. Which call comes between the steps of another
// is chance, and so is whether a fault that is not theirs shows in them: only for the
// mutants that name or declare them, they have to fail. They may for any other.
func atOnce() []string {
	return []string{
		"ConcurrentCreatesAreApart", "ConcurrentCreatesOfOneNameMakeOne", "ThreeCreatesMakeOne", "OneUIDWinsAName",
		"CreateAndDeleteMayOverlap", "ListMayOverlapOthers", "GetMayOverlapDeletes",
	}
}

func mutants() map[string]mutant {
	all := map[string]mutant{}
	for _, part := range []map[string]mutant{
		createMutants(), identityMutants(), getMutants(), deleteMutants(), listMutants(), callMutants(), checkMutants(),
		outageMutants(), blindListMutants(), refusalMutants(),
		concurrencyMutants(), overlapMutants(), adoptionMutants(), secretMutants(), dutyMutants(), payloadMutants(),
		secondaryMutants(), leftoverMutants(), prepareMutants(),
		axesCreateMutants(), axesMarkMutants(), axesStateMutants(), axesPartMutants(), axesAsyncMutants(),
		axesCallMutants(), axesTraceMutants(),
	} {
		maps.Copy(all, part)
	}
	return all
}
