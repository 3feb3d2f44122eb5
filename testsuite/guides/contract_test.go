package guides_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/egressfleet/egressfleet/providers"
	"github.com/egressfleet/egressfleet/testsuite/providertest"
)

func TestEveryRowNamesASectionOfTheContract(t *testing.T) {
	t.Parallel()
	contract := read(t, "docs", "provider-contract.md")
	for _, row := range providertest.Rows() {
		require.True(t, hasSection(contract, row.Section), "row %s: there is no section %s", row.Name, row.Section)
	}
	require.False(t, hasSection(contract, "4.20"))
	require.False(t, hasSection(contract, "1.9"))
}

// hasSection knows the three forms: a heading, a paragraph with its number in bold,
// and a row of the table of axes.
func hasSection(contract, section string) bool {
	for _, form := range []string{"\n## %s. ", "\n**%s ", "\n| %s | "} {
		if strings.Contains(contract, fmt.Sprintf(form, section)) {
			return true
		}
	}
	return false
}

func TestTheContractListsEveryAxisByItsNumber(t *testing.T) {
	t.Parallel()
	contract := read(t, "docs", "provider-contract.md")
	for i, axis := range (providers.Profile{}).Axes() {
		require.Contains(t, contract, fmt.Sprintf("\n| 4.%d | %s | ", i+1, axis.Name))
	}
}
