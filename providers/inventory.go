package providers

import (
	"context"
	"time"
)

// Inventorier is an optional interface, found with As: everything a provider has
// at its backend, in one listing. ListByTag is derived from it.
type Inventorier interface {
	Inventory(ctx context.Context) (Inventory, error)
}

// Inventory is one listing of a backend.
type Inventory struct {
	Instances []Instance
	Leftovers []Leftover // secondary resources without an instance
	// Omitted names what could not be read, each by the location that begins its IDs, or
	// by an ID: nothing there counts as missing.
	Omitted []string
}

// Leftover is a marked secondary resource whose instance is not there.
type Leftover struct {
	ID           string // Delete takes it
	Kind         string // "volume", "record", …
	UID          string
	Installation string
	Owner        string
	CreatedAt    time.Time
}
