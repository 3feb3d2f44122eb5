package main

import (
	"encoding/json"
	"fmt"
	"slices"

	v1 "github.com/egressfleet/egressfleet/api/v1"
)

// wish is what the client of one proxy was promised: the sum of its accepted
// operations.
type wish struct {
	Name     string
	Living   bool
	Held     bool
	Spec     v1.ProxySpec
	Replaced string // the instance that an accepted replace has to have removed; empty: none
	Open     string // an operation that was never accepted; empty: none
}

// evidence is all that the judgement rests on.
type evidence struct {
	Wishes  []wish
	Proxies map[string]v1.Proxy // by name, as the fleet shows them; one that is gone is not there
	Held    []holding           // what the backend holds in the end
	Log     []happening         // all that came and went there, in order
}

// verdict counts what is wrong; Report has one line for each.
type verdict struct {
	Duplicates int // instances that came while another one of their UID was there
	Leaks      int // instances in the end that no living proxy has
	Lost       int // proxies that are not what was accepted
	Report     []string
}

func (v verdict) clean() bool { return v.settled() && v.Duplicates == 0 }

// settled reports whether time cannot make it better.
func (v verdict) settled() bool { return v.Leaks == 0 && v.Lost == 0 }

// judge is pure.
func judge(e evidence) (v verdict) {
	v.duplicates(e.Log)
	v.leaks(e)
	for _, w := range e.Wishes {
		if fault := e.lost(w); fault != "" {
			v.Lost++
			v.Report = append(v.Report, "lost: "+w.Name+": "+fault)
		}
	}
	return v
}

// duplicates counts an instance that came while another one of its UID was there, be
// that one on its way out or not. One whose create failed late never was an instance.
func (v *verdict) duplicates(log []happening) {
	there := map[string][]string{} // by UID
	for _, h := range log {
		ids := there[h.UID]
		switch {
		case h.Failed:
		case h.Gone:
			there[h.UID] = slices.DeleteFunc(ids, func(id string) bool { return id == h.ID })
		default:
			if len(ids) > 0 {
				v.Duplicates++
				v.Report = append(v.Report, fmt.Sprintf("duplicate: UID %s: %s came while %v was there", h.UID, h.ID, ids))
			}
			there[h.UID] = append(ids, h.ID)
		}
	}
}

// leaks counts what the backend holds beside the one instance of each living proxy.
func (v *verdict) leaks(e evidence) {
	wanted := map[string]string{} // the ID of its instance by UID
	for _, w := range e.Wishes {
		if p, found := e.Proxies[w.Name]; found && w.Living {
			wanted[p.Metadata.UID] = p.Status.ProviderID
		}
	}
	for _, h := range e.Held {
		if id, living := wanted[h.UID]; !living || id != h.ID {
			v.Leaks++
			v.Report = append(v.Report, fmt.Sprintf("leak: %s of UID %s belongs to no living proxy", h.ID, h.UID))
		}
	}
}

// lost says what a proxy lacks of its wish; empty for nothing.
func (e evidence) lost(w wish) string {
	p, found := e.Proxies[w.Name]
	switch {
	case w.Open != "":
		return "was never accepted: " + w.Open
	case !w.Living && found:
		return fmt.Sprintf("was deleted, and is %s (%v)", p.Status.Phase, p.Status.Conditions)
	case !w.Living:
		return ""
	case !found:
		return "is wanted, and is not there"
	case p.Status.Phase != v1.PhaseRunning:
		return fmt.Sprintf("is %s, not Running (%v)", p.Status.Phase, p.Status.Conditions)
	case p.Status.Held != w.Held:
		return fmt.Sprintf("held is %t, accepted was %t", p.Status.Held, w.Held)
	case p.Status.ProviderID == w.Replaced:
		return fmt.Sprintf("instance %s was to be replaced, and is still there", w.Replaced)
	default:
		return e.unlike(w, p)
	}
}

// mark is what an instance remembers of its spec.
type mark struct {
	Placement v1.Placement `json:"placement"`
	Port      int          `json:"port"`
	Digest    string       `json:"cloudInitSHA256"`
	SpecHash  string       `json:"specHash"`
}

// unlike says how a running proxy or its instance differs from the accepted spec.
func (e evidence) unlike(w wish, p v1.Proxy) string {
	i := slices.IndexFunc(e.Held, func(h holding) bool { return h.ID == p.Status.ProviderID && !h.Failed })
	if i < 0 {
		return fmt.Sprintf("its instance %q is not at the backend", p.Status.ProviderID)
	}
	var have mark
	if err := json.Unmarshal([]byte(e.Held[i].SpecMark), &have); err != nil {
		return fmt.Sprintf("the mark of %s cannot be read: %v", e.Held[i].ID, err)
	}
	want := mark{w.Spec.Placement, w.Spec.Port, v1.Digest(w.Spec.CloudInit.Bytes()), p.Status.SpecHash}
	switch {
	case e.Held[i].UID != p.Metadata.UID:
		return fmt.Sprintf("its instance %s is of UID %s", e.Held[i].ID, e.Held[i].UID)
	case have != want:
		return fmt.Sprintf("its instance was made from %+v, accepted was %+v", have, want)
	case p.Status.ObservedGeneration != p.Metadata.Generation:
		return fmt.Sprintf("generation %d was seen of %d", p.Status.ObservedGeneration, p.Metadata.Generation)
	default:
		return ""
	}
}
