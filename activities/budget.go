package activities

import (
	"encoding/json"
	"fmt"
)

// Budget bounds what a result lists: a server warns of a payload over 256 KiB, and
// fails one over 2 MiB.
type Budget struct{ Lines, Bytes int }

// ReportBudget is for the lines of one report, and for those of a result of several.
func ReportBudget() Budget { return Budget{Lines: 500, Bytes: 160 << 10} }

// Take returns the first of all that the budget allows, and takes them off it. It
// measures them as they are stored.
func Take[T any](b *Budget, all []T) []T {
	for i, line := range all {
		raw, err := json.Marshal(line)
		if b.Lines--; err != nil || b.Lines < 0 || len(raw) > b.Bytes {
			b.Lines, b.Bytes = 0, 0 // what follows would be out of order
			return all[:i:i]
		}
		b.Bytes -= len(raw) + 1
	}
	return all
}

// omittedKept is how many places that a listing left out are named.
const omittedKept = 50

// someOf names the first places, and counts the others.
func someOf(omitted []string) (some []string) {
	for i, place := range omitted {
		if i == omittedKept {
			return append(some, fmt.Sprintf("and %d more", len(omitted)-i))
		}
		some = append(some, cutTo(place, proofKept))
	}
	return some
}
