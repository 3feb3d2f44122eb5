//go:build linux

package main

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/egressfleet/egressfleet/testsuite/program"
	"github.com/egressfleet/egressfleet/testsuite/usage"
)

// restFor is how long the fleet is looked at while nobody asks for anything.
const restFor = 10 * time.Second

// used is what the processes of one kind have used.
type used struct {
	CPU    time.Duration
	Memory int64 // bytes, with the part of each process of what it shares
}

// add counts a process. What its children have used that have ended is counted, too. It is
// pure.
func (u used) add(of usage.Usage, share int64) used {
	return used{CPU: u.CPU + of.CPU() + of.Children, Memory: u.Memory + share}
}

// used is the usage by kind, of all processes that were there: those that have ended count
// by their processor time.
func (w *world) used() map[string]used {
	all, kinds := map[string]used{}, map[int]string{}
	for kind, programs := range map[string][pairs]*program.Program{
		"Temporal": w.servers, "workers": w.workers, "APIs": w.apis,
	} {
		ended := used{}
		for _, p := range programs {
			ended.CPU += p.Spent
			kinds[p.PID()] = kind
		}
		all[kind] = ended
	}
	found, _ := filepath.Glob("/proc/[0-9]*/comm")
	for _, path := range found {
		pid, _ := strconv.Atoi(filepath.Base(filepath.Dir(path)))
		name, _ := os.ReadFile(path) //nolint:gosec // of /proc
		kind := kinds[pid]
		if string(name) == "postgres\n" {
			kind = "PostgreSQL"
		}
		if kind == "" {
			continue
		}
		of, err := usage.Of(pid)
		share, gone := usage.Share(pid)
		if errors.Join(err, gone) == nil { // one that has ended meanwhile has none
			all[kind] = all[kind].add(of, share)
		}
	}
	return all
}

// told is a line of what was used since before.
func told(before, now map[string]used) string {
	var parts []string
	for _, kind := range slices.Sorted(maps.Keys(now)) {
		parts = append(parts, fmt.Sprintf("%s %.1f s and %d MiB", kind,
			(now[kind].CPU-before[kind].CPU).Seconds(), now[kind].Memory>>20))
	}
	return strings.Join(parts, ", ")
}

// rest looks at what a fleet uses that only runs.
func (w *world) rest(ctx context.Context) error {
	before := w.used()
	if err := wait(ctx, restFor); err != nil {
		return err
	}
	size, err := w.database.size(ctx)
	if err != nil {
		return err
	}
	w.say("at rest, in %s: %s; the databases have %d MiB", restFor, told(before, w.used()), size>>20)
	return nil
}
