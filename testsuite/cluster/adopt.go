//go:build linux

package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"

	v1 "github.com/egressfleet/egressfleet/api/v1"
)

// adopt brings all proxies back by the starter, and counts those that are the same as
// before. Then every customer says once more what it wants: the marks do not hold all of
// a spec, and a spec that is the same replaces nothing.
func (w *world) adopt(ctx context.Context, before []v1.Proxy) error {
	planned, err := w.starterAdopt(ctx)
	if err != nil {
		return err
	}
	shown, err := w.shown(ctx, 0)
	if err != nil {
		return err
	}
	if len(shown) > 0 {
		return fmt.Errorf("%d proxies are there before any was adopted", len(shown))
	}
	done, err := w.starterAdopt(ctx, "--yes")
	if err != nil {
		return err
	}
	w.say("starter adopt would adopt %d, and with --yes has adopted %d", planned.Adoptable, done.Adopted)
	if err := w.settle(ctx, "after the adoption"); err != nil {
		return err
	}
	after, err := w.shown(ctx, 0)
	if err != nil {
		return err
	}
	w.Adopted = min(same(before, after), done.Adopted)
	if err := w.each(ctx, func(ctx context.Context, c *customer) error { return c.repeat(ctx) }); err != nil {
		return err
	}
	return w.settle(ctx, "after all specs were applied again")
}

// adopted is what the starter says, in all.
type adopted struct{ Adoptable, Adopted int }

func (w *world) starterAdopt(ctx context.Context, args ...string) (sum adopted, err error) {
	args = append([]string{"adopt", "-o", "json"}, args...)
	cmd := exec.CommandContext(ctx, w.built("starter"), args...) //nolint:gosec // ours
	cmd.Env = append(os.Environ(), fmt.Sprintf("TEMPORAL_ADDRESS=%s:%d", frontends, frontendPort),
		"TEMPORAL_NAMESPACE="+temporalNamespace)
	var said bytes.Buffer
	cmd.Stderr = &said
	text, err := cmd.Output()
	if err != nil {
		return sum, fmt.Errorf("starter adopt: %w\n%.2000s%s", err, text, &said)
	}
	var r struct{ Providers []adopted }
	if err := json.Unmarshal(text, &r); err != nil {
		return sum, fmt.Errorf("starter adopt: %w in %.300s", err, text)
	}
	for _, p := range r.Providers {
		sum.Adoptable += p.Adoptable
		sum.Adopted += p.Adopted
	}
	return sum, nil
}

// same counts the proxies that have the UID and the instance that they had.
func same(before, after []v1.Proxy) (n int) {
	had := map[string]v1.Proxy{}
	for _, p := range before {
		had[p.Metadata.Name] = p
	}
	for _, p := range after {
		was, found := had[p.Metadata.Name]
		if found && was.Metadata.UID == p.Metadata.UID && was.Status.ProviderID == p.Status.ProviderID {
			n++
		}
	}
	return n
}
