package kubernetes_test

import (
	"testing"
	"time"

	"github.com/egressfleet/egressfleet/testsuite/providertest"
)

func TestContract(t *testing.T) {
	t.Parallel()
	m := new(labs)
	providertest.Suite{
		New:          m.open,
		Installation: installation,
		Name:         providerName,
		Secrets:      []string{secret},
		Checker:      true,
		Inventory:    true,
		ListsState:   true,
		Lab:          m.hooks(),
		Poll:         5 * time.Millisecond,
	}.Run(t)
}
