package proxy

import (
	"testing"

	"github.com/egressfleet/egressfleet/providers"
)

// BenchmarkDecide takes the rounds that a fleet is in most: what is remembered meets what
// was seen, and a plan comes of it.
func BenchmarkDecide(b *testing.B) {
	for name, row := range map[string]struct {
		state State
		seen  observation
	}{
		"steady":   {made(), running},
		"making":   {made(), provisioning},
		"failing":  {made(), failing(providers.ErrTransient, true)},
		"deleting": {made(deleting), running},
	} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				seen := row.state.settle(row.seen, testUID)
				decide(row.state.learn(seen), seen)
			}
		})
	}
}
