//go:build linux

package main

import (
	"context"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/egressfleet/egressfleet/testsuite/program"
)

// ticksPerSecond is in what the kernel counts processor time in /proc, on every
// architecture that Go knows.
const ticksPerSecond = 100

// restFor is how long the fleet is looked at while nobody asks for anything.
const restFor = 10 * time.Second

// usage is what the processes of one kind have used.
type usage struct {
	CPU    time.Duration
	Memory int64 // bytes, with the part of each process of what it shares
}

// add reads the usage of a process: the texts of its files stat and smaps_rollup in /proc.
// What its children have used that have ended is counted, too. It is pure.
func (u usage) add(stat, rollup string) usage {
	fields := strings.Fields(stat[strings.LastIndexByte(stat, ')')+1:])
	const userTime, childrensSystemTime = 11, 14 // of the fields after the name
	for n := userTime; n <= childrensSystemTime && n < len(fields); n++ {
		ticks, _ := strconv.ParseInt(fields[n], 10, 64)
		u.CPU += time.Duration(ticks) * time.Second / ticksPerSecond
	}
	for line := range strings.Lines(rollup) {
		if f := strings.Fields(line); len(f) > 1 && f[0] == "Pss:" {
			kibibytes, _ := strconv.ParseInt(f[1], 10, 64)
			u.Memory += kibibytes << 10
		}
	}
	return u
}

// used is the usage by kind, of all processes that were there: those that have ended count
// by their processor time.
func (w *world) used() map[string]usage {
	all, kinds := map[string]usage{}, map[string]string{}
	for kind, programs := range map[string][pairs]*program.Program{
		"Temporal": w.servers, "workers": w.workers, "APIs": w.apis,
	} {
		ended := usage{}
		for _, p := range programs {
			ended.CPU += p.Spent
			kinds[strconv.Itoa(p.PID())] = kind
		}
		all[kind] = ended
	}
	found, _ := filepath.Glob("/proc/[0-9]*/stat")
	for _, path := range found {
		stat, _ := os.ReadFile(path) //nolint:gosec // of /proc
		rollup, _ := os.ReadFile(filepath.Join(filepath.Dir(path), "smaps_rollup"))
		kind := kinds[filepath.Base(filepath.Dir(path))]
		if strings.Contains(string(stat), "(postgres)") {
			kind = "PostgreSQL"
		}
		if kind != "" {
			all[kind] = all[kind].add(string(stat), string(rollup))
		}
	}
	return all
}

// told is a line of what was used since before.
func told(before, now map[string]usage) string {
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
