package main

import (
	"fmt"

	"github.com/egressfleet/egressfleet/providers"
	"github.com/egressfleet/egressfleet/testsuite/gcefake"
)

// evidence is all that the judgement rests on.
type evidence struct {
	Proxies   int
	Unsettled []string // what did not come about in time, a line each
	History   []gcefake.Happening
	Held      []string // instances that were left once all proxies were gone
	Disks     []string
	Firewalls []string
	Calls     int
}

// verdict counts what is wrong; Report has one line for each.
type verdict struct {
	Proxies, Duplicates, Instances, Disks, Firewalls, Unsettled int
	CallsPerProxy                                               float64
	Report                                                      []string
}

func (v verdict) clean() bool {
	return v.Duplicates+v.Instances+v.Disks+v.Firewalls+v.Unsettled == 0
}

func (v *verdict) note(count *int, format string, args ...any) {
	*count++
	v.Report = append(v.Report, fmt.Sprintf(format, args...))
}

// judge is pure.
func judge(e evidence) (v verdict) {
	v.Proxies = e.Proxies
	for _, h := range gcefake.Doubles(e.History, providers.MarkUID) {
		v.note(&v.Duplicates, "duplicate: %s/%s of %s", h.Zone, h.Name, h.Labels[providers.MarkUID])
	}
	for _, line := range e.Unsettled {
		v.note(&v.Unsettled, "not settled: %s", line)
	}
	for _, name := range e.Held {
		v.note(&v.Instances, "leaked instance: %s", name)
	}
	for _, name := range e.Disks {
		v.note(&v.Disks, "leaked disk: %s", name)
	}
	for _, name := range e.Firewalls {
		v.note(&v.Firewalls, "leaked firewall: %s", name)
	}
	if e.Proxies > 0 {
		v.CallsPerProxy = float64(e.Calls) / float64(e.Proxies)
	}
	return v
}
