package fleet

import "github.com/egressfleet/egressfleet/workflows/proxy"

// Request is how a caller asks, beside what. The zero value is good.
type Request struct {
	// ID names the request: repeating one has one effect; an empty one counts for itself.
	ID string
	// IfGeneration is the generation that the caller has seen; 0 is any. Another one, by
	// now, is a *ConflictError that IsPrecondition knows; a Proxy that is not there is
	// ErrNotFound, and none is made.
	IfGeneration int64
}

func (r Request) only() proxy.Only { return proxy.Only{IfGeneration: r.IfGeneration} }

// IsPrecondition reports whether a conflict is that another generation was expected.
func (e *ConflictError) IsPrecondition() bool { return e.Field == proxy.FieldGeneration }
