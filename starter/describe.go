package main

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	v1 "github.com/egressfleet/egressfleet/api/v1"
)

func (a *app) describeCommand() *cobra.Command {
	return &cobra.Command{
		Use: "describe NAME", Short: "Show what became of a proxy, why, and what happens next", Args: exactly(1),
		ValidArgsFunction: a.completeOneName,
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.withFleet(cmd.Context(), func(ctx context.Context, f Fleet) error { return a.describe(ctx, f, args[0]) })
		},
	}
}

// description is what describe shows.
type description struct {
	Proxy    v1.Proxy   `json:"proxy"`
	Timeline []v1.Event `json:"timeline"`
	untold   error      // why there is no timeline
}

func (a *app) describe(ctx context.Context, f Fleet, name string) error {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	p, err := f.Get(ctx, a.namespace, name)
	if err != nil {
		return fmt.Errorf("describe %s/%s: %w", a.namespace, name, err)
	}
	p.Spec = p.Spec.Redacted()
	d := description{Proxy: p}
	// The timeline needs a worker; without one the rest is what a person looks for.
	if d.Timeline, err = f.Timeline(ctx, a.namespace, name); err != nil {
		d.untold = fmt.Errorf("timeline: %w", err)
	}
	return errors.Join(a.printOr(d, d.text(a.view())), d.untold)
}

// text is the description for people.
func (d description) text(v view) string {
	var b strings.Builder
	facts := d.facts(v.now)
	for _, f := range facts {
		if f[1] != "" {
			fmt.Fprintf(&b, "%-15s%s\n", f[0]+":", f[1])
		}
	}
	b.WriteString("\nConditions:\n" + d.conditions(v))
	b.WriteString("\nTimeline:\n" + d.timeline(v))
	return b.String()
}

// facts are names and values; an empty value is left out.
func (d description) facts(now time.Time) [][2]string {
	p, s := d.Proxy, d.Proxy.Status
	return [][2]string{
		{"Name", p.Metadata.Namespace + "/" + p.Metadata.Name},
		{"UID", p.Metadata.UID},
		{"Created", moment(now, p.Metadata.CreatedAt)},
		{"Labels", pairs(p.Metadata.Labels)},
		{"Provider", p.Spec.Provider},
		{"Placement", placement(p.Spec.Placement)},
		{"Cloud-init", cloudInit(p.Spec.CloudInit)},
		{"Port", fmt.Sprint(p.Spec.Port)},
		{"Generation", fmt.Sprintf("%d, acted on up to %d", p.Metadata.Generation, s.ObservedGeneration)},
		{"Phase", phase(now, s)},
		{"Held", map[bool]string{true: "yes: out of discovery, not deleted"}[s.Held]},
		{"Address", address(p)},
		{"Egress IP", s.EgressIP},
		{"Instance", s.ProviderID},
		{"Instance made", moment(now, s.InstanceCreatedAt)},
		{"Next attempt", moment(now, s.NextAttemptAt)},
	}
}

func (d description) conditions(v view) string {
	rows := [][]string{{"TYPE", "STATUS", "REASON", "AGE", "MESSAGE"}}
	for _, c := range d.Proxy.Status.Conditions {
		rows = append(rows, []string{
			c.Type, string(c.Status), c.Reason, age(v.now, c.LastTransitionTime), oneLine(c.Message),
		})
	}
	if len(rows) == 1 {
		return "  none yet\n"
	}
	return v.Table("  ", rows)
}

func (d description) timeline(v view) string {
	if d.untold != nil {
		return "  not to be had\n"
	}
	return eventTable(v, "  ", d.Timeline)
}

func phase(now time.Time, s v1.ProxyStatus) string {
	if s.Since.IsZero() {
		return string(s.Phase)
	}
	return string(s.Phase) + " for " + age(now, s.Since)
}

// moment is a time and how far it is from now.
func moment(now, t time.Time) string {
	switch {
	case t.IsZero():
		return ""
	case t.After(now):
		return t.UTC().Format(time.DateTime) + " UTC, in " + age(t, now)
	default:
		return t.UTC().Format(time.DateTime) + " UTC, " + age(now, t) + " ago"
	}
}

func pairs(labels map[string]string) string {
	var list []string
	for _, key := range slices.Sorted(maps.Keys(labels)) {
		list = append(list, key+"="+labels[key])
	}
	return strings.Join(list, ", ")
}

func placement(p v1.Placement) string {
	var list []string
	for _, f := range [][2]string{
		{"region", p.Region}, {"zone", p.Zone}, {"machine type", p.MachineType}, {"image", p.Image},
	} {
		if f[1] != "" {
			list = append(list, f[0]+" "+f[1])
		}
	}
	return strings.Join(list, ", ")
}

// cloudInit says where user-data comes from, never what it is.
func cloudInit(c v1.CloudInit) string {
	switch {
	case c.SecretRef != nil:
		return "secret " + c.SecretRef.Name + ", key " + c.SecretRef.Key
	case c.Inline != "", c.InlineBase64 != "":
		return "inline, not shown"
	default:
		return ""
	}
}

// oneLine keeps a message within its row.
func oneLine(text string) string { return strings.Join(strings.Fields(text), " ") }
