package activities

import (
	"context"
	"fmt"
	"strings"
	"sync"

	v1 "github.com/egressfleet/egressfleet/api/v1"
	"github.com/egressfleet/egressfleet/providers"
)

// Instances wraps each provider call as one activity.
type Instances struct {
	// Lookup returns a configured provider, in its decorators. release is called once
	// when the call has ended, and never before: the provider may be closed then.
	Lookup func(name string) (p providers.Provider, release func(), ok bool)
	// Installation marks what is created; a configured DNS label.
	Installation string
	// SecretsDir holds the content of secretRefs as <name>/<key>; empty for none.
	SecretsDir string
	// Getenv returns the variables that SecretVariable names; nil for none.
	Getenv func(string) string

	claims    sync.Map // the secretRef that each variable was used for
	preparing turns
}

// CreateInput asks for one instance. Serialised in history: it holds user-data only
// where the spec has it inline.
type CreateInput struct {
	Provider  string              `json:"provider"`
	UID       string              `json:"uid"`
	Attempt   int                 `json:"attempt"`
	Owner     string              `json:"owner"`
	Labels    map[string]string   `json:"labels,omitempty"`
	SpecMark  string              `json:"specMark"`
	Placement providers.Placement `json:"placement,omitzero"`
	CloudInit v1.CloudInit        `json:"cloudInit,omitzero"`
	// Digest is what the user-data of a secretRef is expected to be.
	Digest string `json:"digest,omitempty"`
	Port   int    `json:"port"`
}

// Created is the outcome of a create.
type Created struct {
	ID string `json:"id"`
}

// InstanceRef names one instance on one provider.
type InstanceRef struct {
	Provider string `json:"provider"`
	ID       string `json:"id"`
}

// OwnRef names the instance of one UID on one provider, its ID being unknown.
type OwnRef struct {
	Provider string `json:"provider"`
	UID      string `json:"uid"`
}

// Answer is what a look at the backend came to. Exactly one field is set.
type Answer struct {
	Instance *providers.Instance `json:"instance,omitempty"`
	Gone     bool                `json:"gone,omitempty"`
	// CreateFailed is a create that was accepted and failed later.
	CreateFailed *Fault `json:"createFailed,omitempty"`
}

// CreateInstance creates the instance of the UID, or finds it, and returns its ID.
func (a *Instances) CreateInstance(ctx context.Context, in CreateInput) (Created, error) {
	return call(ctx, a, in.Provider, func(ctx context.Context, p providers.Provider) (Created, error) {
		userData, err := a.userData(in)
		if err != nil {
			return Created{}, err
		}
		id, err := p.Create(ctx, providers.CreateRequest{
			Name: providers.NameFromUID(in.UID), UID: in.UID, Attempt: in.Attempt,
			Installation: a.Installation, Owner: in.Owner, Labels: in.Labels, SpecMark: in.SpecMark,
			Placement: in.Placement, CloudInit: userData, Port: in.Port,
		})
		return Created{ID: id}, err
	})
}

// GetInstance reads one instance. That it is gone, or that its create failed late,
// is an answer and no error.
func (a *Instances) GetInstance(ctx context.Context, ref InstanceRef) (Answer, error) {
	return call(ctx, a, ref.Provider, func(ctx context.Context, p providers.Provider) (Answer, error) {
		return answer(p.Get(ctx, ref.ID))
	})
}

// FindInstance looks for the instance that carries the UID: it resolves a create
// whose outcome nobody knows. What the listing had to leave out may be that instance,
// so then its absence is no answer.
func (a *Instances) FindInstance(ctx context.Context, own OwnRef) (Answer, error) {
	return call(ctx, a, own.Provider, func(ctx context.Context, p providers.Provider) (Answer, error) {
		all, err := inventory(ctx, p)
		if err != nil {
			return Answer{}, err
		}
		for i := range all.Instances {
			if all.Instances[i].UID == own.UID {
				return answer(&all.Instances[i], nil)
			}
		}
		if len(all.Omitted) > 0 {
			return Answer{}, providers.Wrap(providers.ErrTransient, providers.OpList, own.Provider, "",
				fmt.Errorf("the instance of UID %s is not listed, and %d could not be read: %s",
					own.UID, len(all.Omitted), strings.Join(all.Omitted, ", ")))
		}
		return Answer{Gone: true}, nil
	})
}

// DeleteInstance asks the backend to remove the instance.
func (a *Instances) DeleteInstance(ctx context.Context, ref InstanceRef) error {
	_, err := call(ctx, a, ref.Provider, func(ctx context.Context, p providers.Provider) (struct{}, error) {
		return struct{}{}, p.Delete(ctx, ref.ID)
	})
	return err
}

// inventory prefers the listing that says what it left out.
func inventory(ctx context.Context, p providers.Provider) (providers.Inventory, error) {
	if full, ok := providers.As[providers.Inventorier](p); ok {
		return full.Inventory(ctx)
	}
	list, err := p.ListByTag(ctx)
	return providers.Inventory{Instances: list}, err
}

// answer tells what Get said from why it could not say anything.
func answer(inst *providers.Instance, err error) (Answer, error) {
	switch {
	case err == nil && inst != nil:
		shown := *inst
		shown.SpecMark = "" // history needs no copy of it
		return Answer{Instance: &shown}, nil
	case err == nil:
		return Answer{}, providers.Wrap(providers.ErrTransient, providers.OpGet, "", "",
			fmt.Errorf("the provider returned neither an instance nor an error"))
	case providers.IsCreateFailed(err):
		f := faultFrom(err)
		return Answer{CreateFailed: &f}, nil
	case providers.ClassOf(err) == providers.ErrNotFound:
		return Answer{Gone: true}, nil
	default:
		return Answer{}, err
	}
}
