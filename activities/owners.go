package activities

import (
	"context"
	"time"
)

// Owners says which proxies there are. The worker makes one of the fleet's client.
type Owners interface {
	// LivingUIDs returns the UIDs of the proxies that are listed as running. The list
	// lags, and may be empty: a UID in it proves something, its absence nothing.
	LivingUIDs(ctx context.Context) (map[string]bool, error)
	// Owner reads the workflow of an owner (namespace/name) from primary storage. The
	// UID is that of the instance in question.
	Owner(ctx context.Context, owner, uid string) (OwnerState, error)
	// Birth returns when this installation began; zero where nobody knows.
	Birth(ctx context.Context) (time.Time, error)
}

// OwnerState is what primary storage says about an owner, and about the life of the
// UID that was asked for.
type OwnerState struct {
	Found   bool
	Running bool   // the last workflow of that name
	UID     string // its effective UID; empty while no worker has published it
	Status  string // of that workflow, in Temporal's words
	// Ended says that the life of the UID in question is closed, whatever came after.
	Ended bool
}
