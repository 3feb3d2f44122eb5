package providers

import (
	"context"
	"fmt"
)

// Preparer is an optional interface, found with As, of a provider whose first create in
// a place needs something large there: a base image on a host. Create then fetches
// nothing. It answers ErrTransient with a *NotPreparedError as cause, having made
// nothing, and takes part in Prepare's outcome when it is asked again.
type Preparer interface {
	// Prepare returns once Create finds what it needs for req, which has no user-data, no
	// labels and no marks but the installation. It makes no instance. It may take hours
	// while it reports Progress, is repeated after every crash and goes on where it was;
	// what many wait for is fetched once. Its errors have the classes of a create's.
	// Callers: the Proxy workflow, after a Create that was not prepared, until a delete
	// ends its context. Contract §2.5.
	Prepare(ctx context.Context, req CreateRequest) error
}

// NotPreparedError is the cause of an ErrTransient from the Create of a Preparer.
type NotPreparedError struct {
	What string // and where, as "image debian-12 on host kvm-1"
}

// Error says what is missing.
func (e *NotPreparedError) Error() string { return fmt.Sprintf("%s is not there yet", e.What) }
