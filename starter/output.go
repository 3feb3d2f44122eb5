package main

import (
	"bytes"
	"encoding/json"
	"net"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"

	"sigs.k8s.io/yaml"

	v1 "github.com/egressfleet/egressfleet/api/v1"
)

// The forms of an answer.
const (
	outputTable = "table"
	outputJSON  = "json"
	outputYAML  = "yaml"
)

func checkOutput(form string) error {
	switch form {
	case outputTable, outputJSON, outputYAML:
		return nil
	default:
		return usagef("--output: %q is neither table, json nor yaml", form)
	}
}

// printProxies writes one Proxy as an object and several as {"items": […]}, as the
// API does, or as documents that "apply" reads. It never shows user-data.
func (a *app) printProxies(proxies []v1.Proxy) error {
	proxies = append([]v1.Proxy{}, proxies...) // of its own, and [] rather than null
	for i := range proxies {
		proxies[i].Spec = proxies[i].Spec.Redacted()
	}
	switch {
	case a.output == outputTable:
		return a.print(table(proxies, a.Now(), a.namespace == ""))
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

// table shows one Proxy a line. Messages are left to describe: they fit no line.
func table(proxies []v1.Proxy, now time.Time, namespaces bool) string {
	if len(proxies) == 0 {
		return "no proxies\n"
	}
	header := []string{"NAME", "PROVIDER", "PHASE", "ADDRESS", "REASON", "AGE"}
	rows := make([][]string, 0, len(proxies))
	for _, p := range proxies {
		row := []string{
			p.Metadata.Name, p.Spec.Provider, string(p.Status.Phase), address(p), reason(p),
			age(now, p.Metadata.CreatedAt),
		}
		if namespaces {
			row = append([]string{p.Metadata.Namespace}, row...)
		}
		rows = append(rows, row)
	}
	if namespaces {
		header = append([]string{"NAMESPACE"}, header...)
	}
	return columns("", append([][]string{header}, rows...))
}

// columns aligns rows with two spaces between cells; an empty cell becomes "-".
func columns(indent string, rows [][]string) string {
	var b bytes.Buffer
	w := tabwriter.NewWriter(&b, 0, 0, 2, ' ', 0)
	for _, row := range rows {
		cells := make([]string, len(row))
		for i, cell := range row {
			cells[i] = cell
			if cell == "" {
				cells[i] = "-"
			}
		}
		_, _ = w.Write([]byte(indent + strings.Join(cells, "\t") + "\n"))
	}
	_ = w.Flush()
	return b.String()
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
