package main

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"reflect"

	"github.com/rogpeppe/go-internal/diff"
	"sigs.k8s.io/yaml"

	v1 "github.com/egressfleet/egressfleet/api/v1"
	"github.com/egressfleet/egressfleet/starter/fleet"
)

// rehearsal is what apply would do to one Proxy.
type rehearsal struct {
	Namespace string `json:"namespace"`
	Name      string `json:"name"`
	// Outcome is one of the words below.
	Outcome string `json:"outcome"`
	// ReplacesInstance says that the change needs another instance.
	ReplacesInstance bool `json:"replacesInstance,omitempty"`
	// Diff is the unified difference of labels and spec, without user-data.
	Diff string `json:"diff,omitempty"`
}

// The outcomes of a rehearsal.
const (
	wouldCreate  = "would be created"
	wouldChange  = "would be changed"
	wouldNothing = "unchanged"
)

// rehearse says what apply would do, and asks for nothing.
func (a *app) rehearse(ctx context.Context, f Fleet, proxies []v1.Proxy) error {
	var faults []error
	all := []rehearsal{}
	for i, p := range proxies {
		a.step("comparing %s/%s, %d of %d", p.Metadata.Namespace, p.Metadata.Name, i+1, len(proxies))
		r, err := a.rehearseOne(ctx, f, p)
		if err != nil {
			faults = append(faults, fmt.Errorf("apply %s/%s: %w", p.Metadata.Namespace, p.Metadata.Name, err))
			continue
		}
		all = append(all, r)
		if a.forPeople() {
			faults = append(faults, a.print(r.text(a.view())))
		}
	}
	if !a.forPeople() {
		faults = append(faults, a.printOr(all, ""))
	}
	return errors.Join(faults...)
}

func (a *app) rehearseOne(ctx context.Context, f Fleet, p v1.Proxy) (rehearsal, error) {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	was, err := f.Get(ctx, p.Metadata.Namespace, p.Metadata.Name)
	if errors.Is(err, fleet.ErrNotFound) {
		return compare(nil, p)
	}
	if err != nil {
		return rehearsal{}, err
	}
	return compare(&was, p)
}

// compare is pure; was is nil for a Proxy that is not there. Errors:
// *fleet.ConflictError for what apply refuses.
func compare(was *v1.Proxy, is v1.Proxy) (rehearsal, error) {
	r := rehearsal{Namespace: is.Metadata.Namespace, Name: is.Metadata.Name, Outcome: wouldCreate}
	known := v1.ProxySpec{}
	if was != nil {
		known = was.Spec
	}
	if _, err := is.Spec.Restored(known); err != nil {
		return r, err
	}
	is.Spec = is.Spec.Redacted()
	if was == nil {
		r.Diff = difference(r, nil, asWritten(is))
		return r, nil
	}
	old := *was
	old.Spec = old.Spec.Redacted()
	switch {
	case old.Status.Phase == v1.PhaseDeleting:
		return r, &fleet.ConflictError{
			Field: "status.phase", Value: string(v1.PhaseDeleting), Problem: "takes no new spec; apply again once it is gone",
		}
	case old.Spec.Provider != is.Spec.Provider:
		return r, &fleet.ConflictError{Field: "spec.provider", Value: is.Spec.Provider, Problem: "never changes; it is " +
			old.Spec.Provider}
	case reflect.DeepEqual(old.Spec, is.Spec) && maps.Equal(old.Metadata.Labels, is.Metadata.Labels):
		r.Outcome = wouldNothing
		return r, nil
	}
	r.Outcome = wouldChange
	r.ReplacesInstance = old.Spec.Placement != is.Spec.Placement || old.Spec.Port != is.Spec.Port ||
		!reflect.DeepEqual(old.Spec.CloudInit, is.Spec.CloudInit)
	r.Diff = difference(r, asWritten(old), asWritten(is))
	return r, nil
}

// asWritten is what a person may write of a Proxy, as YAML.
func asWritten(p v1.Proxy) []byte {
	text, err := yaml.Marshal(struct {
		Labels map[string]string `json:"labels,omitempty"`
		Spec   v1.ProxySpec      `json:"spec"`
	}{p.Metadata.Labels, p.Spec})
	if err != nil { // it has been read from such a text
		return []byte(err.Error())
	}
	return text
}

func difference(r rehearsal, was, is []byte) string {
	name := r.Namespace + "/" + r.Name
	text := diff.Diff(name+" as it is", was, name+" as it is wanted", is)
	// The first line names the command that would have made it.
	for i, c := range text {
		if c == '\n' {
			return string(text[i+1:])
		}
	}
	return string(text)
}

func (r rehearsal) text(v view) string {
	said := r.Namespace + "/" + r.Name + " " + r.Outcome
	if r.ReplacesInstance {
		said += "; its instance would be replaced"
	}
	return said + "\n" + v.Diff(r.Diff)
}
