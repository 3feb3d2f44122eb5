package providertest

import "slices"

// Row is one rule of the contract.
type Row struct {
	Name    string
	Section string // of the contract
	Breaks  string // which caller breaks, and how
	Needs   string // the field of Suite without which the row is left out
	// Reports are public reports of what the row is about, as owner/repository#number.
	Reports []string

	run func(*scene)
}

// Rows returns the table, in the order of the contract. Add a row together with a
// mutant that it catches.
func Rows() []Row {
	return slices.Concat(
		createRows(), identityRows(), getRows(), deleteRows(), listRows(),
		contextRows(), errorRows(), profileRows(), checkRows(),
		concurrencyRows(), adoptionRows(), secretRows(), dutyRows(), payloadRows(), secondaryRows(),
	)
}
