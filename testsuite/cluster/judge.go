//go:build linux

package main

import (
	"fmt"
	"slices"
	"strings"

	v1 "github.com/egressfleet/egressfleet/api/v1"
	"github.com/egressfleet/egressfleet/providers"
	"github.com/egressfleet/egressfleet/testsuite/gcefake"
)

// evidence is all that the judgement rests on.
type evidence struct {
	Proxies, Kills int
	Adopted        int      // proxies that were brought back after the database was lost
	Restored       int      // proxies that an old backup did not know, and that were brought back
	Astray         []string // what was not as it was promised when the time to settle was over
	Collected      int      // instances that orphan collection deleted after the loss
	Touched        []string // what happened at the backend from the loss until all were adopted
	Weak           []string // what this run does not prove
	History        []gcefake.Happening
	Left           []string // instances once all proxies were deleted
	Failed         []string // workflow tasks of the workers, after the storm
}

// verdict counts what is wrong; Report has one line for each.
type verdict struct {
	Lost, Duplicates int
	Report           []string
}

func (v *verdict) note(format string, args ...any) {
	v.Report = append(v.Report, fmt.Sprintf(format, args...))
}

// leastKills is one of each, and the other one of each.
const leastKills = 6

// judge is pure.
func judge(e evidence) (v verdict) {
	for _, line := range e.Astray {
		v.Lost++
		v.note("lost: %s", line)
	}
	for _, h := range gcefake.Doubles(e.History, providers.MarkUID) {
		v.Duplicates++
		v.note("duplicate: %s/%s of %s", h.Zone, h.Name, h.Labels[providers.MarkUID])
	}
	for _, one := range e.Left {
		v.note("left behind: %s", one)
	}
	for _, one := range e.Touched {
		v.note("touched after the loss: %s", one)
	}
	for _, tasks := range e.Failed {
		v.note("workflow tasks failed: %s", tasks)
	}
	if e.Collected > 0 {
		v.note("orphan collection deleted %d instances of a database that was lost", e.Collected)
	}
	if e.Adopted != e.Proxies {
		v.note("%d of %d proxies were adopted", e.Adopted, e.Proxies)
	}
	if e.Restored != groupOf {
		v.note("%d of %d proxies that the backup did not know were adopted", e.Restored, groupOf)
	}
	for _, line := range e.Weak {
		v.note("this run proves too little: %s", line)
	}
	if e.Kills < leastKills {
		v.note("this run proves too little: %d kills, at least %d have to be", e.Kills, leastKills)
	}
	return v
}

// compare says what is not as it was promised, sorted: a proxy that is not there, or is and
// should not be, or is not what was asked for, and instances beside theirs. there are the
// names of the instances at the backend.
func compare(wishes []wish, shown []v1.Proxy, there []string) (lines []string) {
	by := map[string]v1.Proxy{}
	for _, p := range shown {
		by[p.Metadata.Name] = p
	}
	used := 0
	for _, w := range wishes {
		p, found := by[w.Name]
		delete(by, w.Name)
		if fault := w.fault(p, found, there); fault != "" {
			lines = append(lines, w.Name+" "+fault)
		} else if w.Living {
			used++
		}
	}
	for name := range by {
		lines = append(lines, name+" is there, and nobody asked for it")
	}
	if len(lines) == 0 && len(there) != used {
		lines = append(lines, fmt.Sprintf("%d instances for %d proxies", len(there), used))
	}
	slices.Sort(lines)
	return lines
}

// fault is what is wrong with one proxy, or nothing.
func (w wish) fault(p v1.Proxy, found bool, there []string) string {
	instance := p.Status.ProviderID[strings.LastIndexByte(p.Status.ProviderID, '/')+1:]
	switch {
	case w.Open != "":
		return w.Open + " was never accepted"
	case found && !w.Living:
		return "is there, and was deleted"
	case !found && w.Living:
		return "is not there"
	case !w.Living:
		return ""
	case p.Spec.Port != w.Port:
		return fmt.Sprintf("has port %d, and %d was accepted", p.Spec.Port, w.Port)
	case p.Status.Phase != v1.PhaseRunning || p.Status.ObservedGeneration != p.Metadata.Generation:
		return fmt.Sprintf("is %s at generation %d of %d %v", p.Status.Phase, p.Status.ObservedGeneration,
			p.Metadata.Generation, p.Status.Conditions)
	case !slices.Contains(there, instance):
		return "runs on " + p.Status.ProviderID + ", which the backend does not have"
	default:
		return ""
	}
}
