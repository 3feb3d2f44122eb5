package providertest

import (
	"slices"

	"github.com/egressfleet/egressfleet/providers"
)

// Row is one rule of the contract.
type Row struct {
	Name    string
	Section string // of the contract
	Breaks  string // which caller breaks, and how
	// Needs are the fields of Suite without which the row is left out, by blanks.
	Needs string
	// Reports are public reports of what the row is about, as owner/repository#number.
	Reports []string

	// Apart says that the row is about the process, and runs in one of its own.
	Apart bool

	// applies says why the row does not fit a profile; "" when it does. nil: it fits all.
	applies func(providers.Profile) string

	run func(*scene)
}

// on runs the row.
func (r Row) on(s *scene) {
	if r.Apart {
		s.apart(r.Name, r.run)
		return
	}
	r.run(s)
}

// Rows returns the table, in the order of the contract. Add a row together with a
// mutant that it catches.
func Rows() []Row {
	return slices.Concat(
		createRows(), identityRows(), getRows(), deleteRows(), listRows(), prepareRows(),
		contextRows(), errorRows(), profileRows(), checkRows(),
		concurrencyRows(), adoptionRows(), secretRows(), dutyRows(), payloadRows(), secondaryRows(),
		axesCreateRows(), axesMarkRows(), axesStateRows(), axesPartRows(), axesAsyncRows(), axesCallRows(), axesTraceRows(),
	)
}
