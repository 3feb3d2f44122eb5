package main

import (
	"encoding/json"
	"net"
	"slices"
	"strconv"
	"time"

	"sigs.k8s.io/yaml"

	v1 "github.com/egressfleet/egressfleet/api/v1"
)

// The forms of an answer.
const (
	outputTable = "table"
	outputWide  = "wide" // a table of more columns
	outputJSON  = "json"
	outputYAML  = "yaml"
)

func outputs() []string { return []string{outputTable, outputWide, outputJSON, outputYAML} }

func checkOutput(form string) error {
	if !slices.Contains(outputs(), form) {
		return usagef("--output: %q is neither table, wide, json nor yaml", form)
	}
	return nil
}

// forPeople reports whether the answer is a text, and no object.
func (a *app) forPeople() bool { return a.output == outputTable || a.output == outputWide }

// printProxies writes one Proxy as an object and several as {"items": […]}, as the
// API does, or as documents that "apply" reads. It never shows user-data.
func (a *app) printProxies(proxies []v1.Proxy) error {
	proxies = append([]v1.Proxy{}, proxies...) // of its own, and [] rather than null
	for i := range proxies {
		proxies[i].Spec = proxies[i].Spec.Redacted()
	}
	switch {
	case a.forPeople():
		return a.print(table(a.view(), proxies))
	case a.output == outputYAML:
		return a.printYAML(proxies)
	case len(proxies) == 1:
		return a.printJSON(proxies[0])
	default:
		return a.printJSON(struct {
			Items []v1.Proxy `json:"items"`
		}{proxies})
	}
}

func (a *app) printJSON(value any) error {
	text, err := json.MarshalIndent(value, "", "  ")
	if err != nil {
		return err
	}
	return a.print(string(text) + "\n")
}

func (a *app) printYAML(proxies []v1.Proxy) error {
	for i, p := range proxies {
		text, err := yaml.Marshal(p)
		if err != nil {
			return err
		}
		if i > 0 {
			text = append([]byte("---\n"), text...)
		}
		if err := a.print(string(text)); err != nil {
			return err
		}
	}
	return nil
}

// printYAMLOf writes one document of anything.
func (a *app) printYAMLOf(value any) error {
	text, err := yaml.Marshal(value)
	if err != nil {
		return err
	}
	return a.print(string(text))
}

// address is ip:port, or nothing while there is no IP.
func address(p v1.Proxy) string {
	if p.Status.IP == "" {
		return ""
	}
	return net.JoinHostPort(p.Status.IP, strconv.Itoa(p.Spec.Port))
}

// reason is what speaks against the Proxy, if anything: the reason of a condition
// that is not as it should be.
func reason(p v1.Proxy) string {
	if c, ok := p.Status.Condition(v1.ConditionDeleting); ok && c.Status == v1.ConditionTrue {
		return c.Reason
	}
	if c, ok := p.Status.Condition(v1.ConditionProvisioned); ok && c.Status != v1.ConditionTrue {
		return c.Reason
	}
	if c, ok := p.Status.Condition(v1.ConditionHealthy); ok && c.Status == v1.ConditionFalse {
		return c.Reason
	}
	if p.Status.Held {
		return v1.ConditionHeld
	}
	return ""
}

const day = 24 * time.Hour

// age is a rough length of time: 12s, 5m, 3h, 2d.
func age(now, since time.Time) string {
	if since.IsZero() {
		return ""
	}
	d := max(now.Sub(since), 0)
	switch {
	case d < time.Minute:
		return strconv.Itoa(int(d/time.Second)) + "s"
	case d < time.Hour:
		return strconv.Itoa(int(d/time.Minute)) + "m"
	case d < day:
		return strconv.Itoa(int(d/time.Hour)) + "h"
	default:
		return strconv.Itoa(int(d/day)) + "d"
	}
}
