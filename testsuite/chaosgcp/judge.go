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
	e.doubles(&v)
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

// doubles counts the instances that came while another one of the same UID was there,
// on its way out or not, one whose insert had yet to fail included.
func (e evidence) doubles(v *verdict) {
	there := map[string]int{}
	for _, h := range e.History {
		uid := h.Labels[providers.MarkUID]
		if !h.Came {
			there[uid]--
			continue
		}
		if there[uid]++; there[uid] > 1 {
			v.note(&v.Duplicates, "duplicate: %s/%s of %s", h.Zone, h.Name, uid)
		}
	}
}
