//go:build linux

package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	v1 "github.com/egressfleet/egressfleet/api/v1"
	"github.com/egressfleet/egressfleet/starter/fleet"
	"github.com/egressfleet/egressfleet/testsuite/guides"
	"github.com/egressfleet/egressfleet/workflows/gc"
)

const (
	// groupOf is how many proxies share a fate that the backup does not know. Orphans of two
	// groups are as many as a collection deletes without being forced.
	groupOf = 10
	// typedWithin bounds what a page has an operator type.
	typedWithin = 3 * time.Minute

	production, lostDatabase = "docs/production.md", "docs/runbooks/lost-database.md"
	backups, restored        = "Backups", "A backup was restored"
)

// The blocks of the section of a restored backup.
const (
	putBack = iota
	pauseCollection
	lookAndAdopt
	resumeCollection
)

func (w *world) group(n int) []*customer { return w.customers[n*groupOf : (n+1)*groupOf] }

// Groups by what becomes of their proxies after the backup; the others go on as they are.
func (w *world) born() []*customer    { return w.group(0) }
func (w *world) gone() []*customer    { return w.group(1) }
func (w *world) changed() []*customer { return w.group(2) }
func (w *world) anew() []*customer    { return w.group(3) } // deleted, and made once more
func (w *world) quiet() []*customer   { return w.customers[4*groupOf:] }

// restore puts an old backup in the place of Temporal's databases, by the commands of the
// pages, and brings the fleet to what was promised since.
func (w *world) restore(ctx context.Context) error {
	if err := w.ageBackup(ctx); err != nil {
		return err
	}
	before, err := w.shown(ctx, 0)
	if err != nil {
		return err
	}
	past := len(w.cloud.History())
	if err := w.putBack(ctx); err != nil {
		return err
	}
	after, err := w.adoptOrphans(ctx)
	if err != nil {
		return err
	}
	w.Restored = same(of(before, w.born()), of(after, w.born()))
	safe := of(before, slices.Concat(w.born(), w.quiet()))
	if still := same(safe, after); still != len(safe) {
		w.Astray = append(w.Astray, fmt.Sprintf("after the restored backup %d of %d are what they were", still, len(safe)))
	}
	for _, h := range w.cloud.History()[past:] {
		if slices.ContainsFunc(safe, func(p v1.Proxy) bool { return strings.HasSuffix(p.Status.ProviderID, "/"+h.Name) }) {
			w.Touched = append(w.Touched, touched(h))
		}
	}
	return w.catchUp(ctx)
}

// ageBackup takes a backup of a fleet that works, and then has proxies come, go and change.
func (w *world) ageBackup(ctx context.Context) error {
	if err := os.Symlink(filepath.Join(w.root, "bin"), filepath.Join(w.dir, "bin")); err != nil {
		return err
	}
	if err := some(ctx, w.born(), func(ctx context.Context, c *customer) error { return c.remove(ctx) }); err != nil {
		return err
	}
	if err := w.settle(ctx, "before the backup"); err != nil {
		return err
	}
	if err := w.types(ctx, production, backups, 0); err != nil {
		return err
	}
	w.say("a backup of Temporal's databases was taken")
	create := func(ctx context.Context, c *customer) error { return c.create(ctx) }
	remove := func(ctx context.Context, c *customer) error { return c.remove(ctx) }
	change := func(ctx context.Context, c *customer) error { return c.change(ctx) }
	for _, step := range []struct {
		of []*customer
		do func(context.Context, *customer) error
	}{{w.born(), create}, {w.gone(), remove}, {w.changed(), change}, {w.anew(), remove}, {w.anew(), create}} {
		if err := some(ctx, step.of, step.do); err != nil {
			return err
		}
	}
	return w.settle(ctx, "after the backup")
}

// putBack ends everything, and has it begin with the backup.
func (w *world) putBack(ctx context.Context) error {
	if err := w.stopFleet(ctx); err != nil {
		return err
	}
	if err := w.killServers(); err != nil {
		return err
	}
	if err := w.types(ctx, lostDatabase, restored, putBack); err != nil {
		return err
	}
	if err := w.startServers(ctx); err != nil {
		return err
	}
	if err := w.types(ctx, lostDatabase, restored, pauseCollection); err != nil {
		return err
	}
	if err := w.startFleet(ctx); err != nil {
		return err
	}
	w.say("everything is up again, with the backup")
	return nil
}

// adoptOrphans returns the fleet once what the backup did not know is adopted and all that
// it did know lives again. Those that were made anew have their instances twice then: the
// one of before has none, and gets one.
func (w *world) adoptOrphans(ctx context.Context) (after []v1.Proxy, err error) {
	convicts, _, err := w.sweepAgeless(ctx, gc.Input{Plan: true})
	if err != nil {
		return nil, err
	}
	w.say("with no pause, orphan collection would take %d instances for orphans", convicts)
	// The owners of those that were made anew may not have said their UID yet: a doubt.
	if convicts < len(w.born()) {
		w.Weak = append(w.Weak, fmt.Sprintf("%d instances were in danger after the backup was restored", convicts))
	}
	if err := w.types(ctx, lostDatabase, restored, lookAndAdopt); err != nil {
		return nil, err
	}
	err = w.until(ctx, settleWithin, "all proxies of the backup and those adopted run", func(ctx context.Context) error {
		if after, err = w.shown(ctx, 0); err != nil {
			return err
		}
		for _, p := range after {
			if p.Status.Phase != v1.PhaseRunning {
				return fmt.Errorf("%s is %s %v", p.Metadata.Name, p.Status.Phase, p.Status.Conditions)
			}
		}
		if len(after) != proxies {
			return fmt.Errorf("%d of %d are there", len(after), proxies)
		}
		return nil
	})
	return after, err
}

// catchUp ends what should be gone, applies all specs, lets orphan collection go on, and makes
// what is missing.
func (w *world) catchUp(ctx context.Context) error {
	if err := some(ctx, w.gone(), func(ctx context.Context, c *customer) error { return c.remove(ctx) }); err != nil {
		return err
	}
	rest := slices.Concat(w.born(), w.changed(), w.anew(), w.quiet())
	if err := some(ctx, rest, func(ctx context.Context, c *customer) error { return c.repeat(ctx) }); err != nil {
		return err
	}
	if err := w.types(ctx, lostDatabase, restored, resumeCollection); err != nil {
		return err
	}
	_, deleted, err := w.sweepAgeless(ctx, gc.Input{})
	if err != nil {
		return err
	}
	if deleted != len(w.anew()) {
		w.Weak = append(w.Weak, fmt.Sprintf("orphan collection deleted %d of %d that were left", deleted, len(w.anew())))
	}
	if err := w.settle(ctx, "after the backup was restored and all specs were applied again"); err != nil {
		return err
	}
	if err := some(ctx, w.gone(), func(ctx context.Context, c *customer) error { return c.create(ctx) }); err != nil {
		return err
	}
	return w.settle(ctx, "after all were there again")
}

// sweepAgeless runs orphan collection over instances of any age.
func (w *world) sweepAgeless(ctx context.Context, in gc.Input) (convicts, deleted int, err error) {
	var r gc.Result
	in.MinAge = ageless
	if err := w.fleet.RunSweep(ctx, fleet.OrphanGC(), in, &r); err != nil {
		return 0, 0, fmt.Errorf("orphan collection: %w", err)
	}
	for _, s := range r.Sweeps {
		if s.Fault != nil {
			return 0, 0, fmt.Errorf("orphan collection of %s: %s", s.Provider, s.Fault.Text)
		}
		convicts += s.Convicts
		deleted += s.Deleted
	}
	return convicts, deleted, nil
}

// of are those of some customers.
func of(all []v1.Proxy, customers []*customer) (found []v1.Proxy) {
	for _, p := range all {
		if slices.ContainsFunc(customers, func(c *customer) bool { return c.wish.Name == p.Metadata.Name }) {
			found = append(found, p)
		}
	}
	return found
}

// types runs what a section of a page has an operator type: its block of that number.
func (w *world) types(ctx context.Context, page, section string, n int) error {
	text, err := os.ReadFile(filepath.Join(w.root, page)) //nolint:gosec // of the repository
	if err != nil {
		return err
	}
	line, err := typed(string(text), section, n)
	if err != nil {
		return fmt.Errorf("%s: %w", page, err)
	}
	ctx, cancel := context.WithTimeout(ctx, typedWithin)
	defer cancel()
	cmd := exec.CommandContext(ctx, "bash", "-euo", "pipefail", "-c", line) //nolint:gosec // the page's
	cmd.Dir = w.dir
	cmd.Env = []string{
		"PATH=" + w.database.bin + ":" + os.Getenv("PATH"), "HOME=" + w.dir,
		"PGHOST=" + databaseHost, "PGPORT=" + databasePort, "PGUSER=" + databaseUser,
		fmt.Sprintf("TEMPORAL_ADDRESS=%s:%d", frontends, frontendPort), "TEMPORAL_NAMESPACE=" + temporalNamespace,
	}
	said, err := cmd.CombinedOutput()
	if err != nil {
		return fmt.Errorf("%s, %q: %w\n%s%.3000s", page, section, err, line, said)
	}
	return nil
}

// typed is the block of that number, from 0, that a section of a page marks as sh.
func typed(page, section string, n int) (string, error) {
	_, text, found := strings.Cut(page, "\n## "+section+"\n")
	if !found {
		return "", fmt.Errorf("there is no section %q", section)
	}
	text, _, _ = strings.Cut(text, "\n## ")
	for _, block := range guides.Blocks(text) {
		if block.Language != "sh" {
			continue
		}
		if n == 0 {
			return block.Code, nil
		}
		n--
	}
	return "", fmt.Errorf("section %q lacks blocks of sh", section)
}
