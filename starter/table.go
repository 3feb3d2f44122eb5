package main

import (
	"time"

	v1 "github.com/egressfleet/egressfleet/api/v1"
	"github.com/egressfleet/egressfleet/starter/terminal"
)

// view is how an answer is shown to a person.
type view struct {
	terminal.Screen
	now        time.Time
	namespaces bool // proxies of several are shown
	wide       bool // all that is known of each
}

func (a *app) view() view {
	v := view{now: a.Now(), namespaces: a.namespace == "", wide: a.output == outputWide}
	if a.OutScreen != nil {
		v.Screen = a.OutScreen()
	}
	return v
}

// everywhere is the view of proxies of several namespaces.
func (v view) everywhere() view {
	v.namespaces = true
	return v
}

// table shows one Proxy a line. Messages are left to describe: they fit no line.
func table(v view, proxies []v1.Proxy) string {
	if len(proxies) == 0 {
		return "no proxies\n"
	}
	rows := [][]string{proxyHead(v)}
	for _, p := range proxies {
		rows = append(rows, proxyRow(v, p))
	}
	return v.Table("", rows)
}

func proxyHead(v view) []string {
	head := []string{"NAME", "PROVIDER", "PHASE", "ADDRESS", "REASON", "AGE"}
	if v.namespaces {
		head = append([]string{"NAMESPACE"}, head...)
	}
	if v.wide {
		head = append(head, "HEALTH", "NEXT", "EGRESS", "PLACEMENT", "INSTANCE", "LABELS")
	}
	return head
}

func proxyRow(v view, p v1.Proxy) []string {
	s := p.Status
	row := []string{
		p.Metadata.Name, p.Spec.Provider, string(s.Phase), address(p), reason(p), age(v.now, p.Metadata.CreatedAt),
	}
	if v.namespaces {
		row = append([]string{p.Metadata.Namespace}, row...)
	}
	if v.wide {
		row = append(row, healthWord(s.Healthy), untilNext(v.now, s.NextAttemptAt), s.EgressIP,
			placement(p.Spec.Placement), s.ProviderID, pairs(p.Metadata.Labels))
	}
	return row
}

// healthWord is empty while no probe has a verdict.
func healthWord(healthy *bool) string {
	switch {
	case healthy == nil:
		return ""
	case *healthy:
		return "healthy"
	default:
		return "unhealthy"
	}
}

func untilNext(now, next time.Time) string {
	if next.IsZero() {
		return ""
	}
	return "in " + age(next, now)
}
