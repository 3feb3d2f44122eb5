package providertest_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/egressfleet/egressfleet/providers"
	"github.com/egressfleet/egressfleet/testsuite/providertest"
)

// answer is a choice on the n-th axis.
type answer struct {
	n      int
	choice string
}

type pair struct{ a, b answer }

// pairwise returns profiles in which every two answers to two questions meet. It takes
// an open pair and adds, axis by axis, the answer that closes most others.
func pairwise() (out []providers.Profile) {
	open := allPairs()
	for len(open) > 0 {
		chosen := first(open)
		for n := range plainProfile().Axes() {
			if _, done := chosen[n]; !done {
				chosen[n] = best(n, chosen, open)
			}
		}
		p := plainProfile()
		for n, choice := range chosen {
			p = with(p, n, choice)
		}
		for a, one := range chosen {
			for b, two := range chosen {
				delete(open, pair{answer{a, one}, answer{b, two}})
			}
		}
		out = append(out, p)
	}
	return out
}

func answers(n int) []string { return providertest.Choices()[plainProfile().Axes()[n].Name] }

// allPairs returns each pair with the lower axis first.
func allPairs() map[pair]bool {
	all := map[pair]bool{}
	axes := len(plainProfile().Axes())
	for a := range axes {
		for b := a + 1; b < axes; b++ {
			for _, one := range answers(a) {
				for _, two := range answers(b) {
					all[pair{answer{a, one}, answer{b, two}}] = true
				}
			}
		}
	}
	return all
}

// first returns the open pair that comes first in the contract, so that a failure
// can be repeated.
func first(open map[pair]bool) map[int]string {
	axes := len(plainProfile().Axes())
	for a := range axes {
		for b := a + 1; b < axes; b++ {
			for _, one := range answers(a) {
				for _, two := range answers(b) {
					if open[pair{answer{a, one}, answer{b, two}}] {
						return map[int]string{a: one, b: two}
					}
				}
			}
		}
	}
	return nil
}

func best(n int, chosen map[int]string, open map[pair]bool) (choice string) {
	most := -1
	for _, option := range answers(n) {
		closes := 0
		for m, other := range chosen {
			a, b := answer{n, option}, answer{m, other}
			if n > m {
				a, b = b, a
			}
			if open[pair{a, b}] {
				closes++
			}
		}
		if closes > most {
			choice, most = option, closes
		}
	}
	return choice
}

func TestPairsMeet(t *testing.T) {
	t.Parallel()
	left := allPairs()
	profiles := pairwise()
	for _, p := range profiles {
		axes := p.Axes()
		for a := range axes {
			for b := a + 1; b < len(axes); b++ {
				delete(left, pair{answer{a, axes[a].Choice}, answer{b, axes[b].Choice}})
			}
		}
	}
	require.Empty(t, left)
	require.Less(t, len(profiles), 40, "a few profiles are enough")
}
