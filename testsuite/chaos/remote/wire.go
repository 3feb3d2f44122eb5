// Package remote puts a socket between a provider and its caller, so that a backend
// survives the process that calls it. Handler serves one, Provider calls it: an error
// keeps its class, its operation and its words, and the end of the caller's context
// reaches the backend. It imports the contract only. Start reading at Provider.
package remote

import (
	"errors"

	"github.com/egressfleet/egressfleet/providers"
)

// call is one request of the wire. Its operation is an Op constant of the contract.
type call struct {
	Op      string                   `json:"op"`
	ID      string                   `json:"id,omitempty"`
	Request *providers.CreateRequest `json:"request,omitempty"`
}

// reply is the answer to a call; Fault is set when it failed.
type reply struct {
	ID        string               `json:"id,omitempty"`
	Instance  *providers.Instance  `json:"instance,omitempty"`
	Inventory *providers.Inventory `json:"inventory,omitempty"`
	Fault     *fault               `json:"fault,omitempty"`
}

// fault is an error on the wire. Without a class it is no *providers.Error.
type fault struct {
	Class    providers.Class         `json:"class,omitempty"`
	Op       string                  `json:"op,omitempty"`
	Provider string                  `json:"provider,omitempty"`
	ID       string                  `json:"id,omitempty"`
	Text     string                  `json:"text"`
	Foreign  *providers.ForeignError `json:"foreign,omitempty"`
}

func faultOf(err error) *fault {
	if err == nil {
		return nil
	}
	e, ok := errors.AsType[*providers.Error](err)
	if !ok {
		return &fault{Text: err.Error()}
	}
	f := &fault{Class: e.Class, Op: e.Op, Provider: e.Provider, ID: e.ID, Text: e.Err.Error()}
	f.Foreign, _ = errors.AsType[*providers.ForeignError](e.Err)
	return f
}

func (f *fault) error() error {
	switch {
	case f == nil:
		return nil
	case f.Class == "":
		return errors.New(f.Text)
	case f.Foreign != nil:
		return providers.Wrap(f.Class, f.Op, f.Provider, f.ID, f.Foreign)
	default:
		return providers.Wrap(f.Class, f.Op, f.Provider, f.ID, errors.New(f.Text))
	}
}
