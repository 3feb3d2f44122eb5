package main

import (
	"cmp"
	"math"
	"os"
	"runtime/debug"

	"github.com/KimMachineGun/automemlimit/memlimit"

	"github.com/egressfleet/egressfleet/internal/config"
)

const mebibyte = 1 << 20

// boundHeap has the collector keep the process within the memory limit of its control
// group. GOMEMLIMIT, where it is set, is stronger. Without a control group there is
// nothing to keep within.
func boundHeap() {
	_, _ = memlimit.Set(memlimit.WithRatio(1), memlimit.WithProvider(func() (uint64, error) {
		limit, err := memlimit.FromCgroup()
		if err != nil {
			return 0, err
		}
		return uint64(heapOf(int64(min(limit, math.MaxInt64)), programSize())), nil //nolint:gosec // neither is negative
	}))
}

// programSize is about what the pages of this program take, in bytes; 0 where it cannot
// be told.
func programSize() int64 {
	path, err := os.Executable()
	if err != nil {
		return 0
	}
	info, err := os.Stat(path)
	if err != nil {
		return 0
	}
	return info.Size()
}

// heapOf is how much of a memory limit the collector may fill: 90 %, or what the program's
// own pages and a 32nd for the kernel leave, where that is less. The pages count in the
// control group, too, and those that have no room are read from the disk again and again,
// until nothing else gets done. It is never less than half: below that the collector is
// what gets nothing else done. All in bytes.
func heapOf(limit, program int64) int64 {
	return max(limit/2, min(limit/10*9, limit-limit/32-program))
}

// heapBound is what the collector keeps within, in bytes; 0 where nothing bounds it.
func heapBound() int64 {
	if limit := debug.SetMemoryLimit(-1); limit != math.MaxInt64 {
		return limit
	}
	return 0
}

// capacity is how much a process has in its memory at one time.
type capacity struct {
	workflows  int // kept between their tasks
	tasks      int // workflow tasks that run
	activities int // that run: calls of providers, probes and sweeps
}

// What a process takes at most, however much memory there is, and at least.
var (
	most  = capacity{workflows: 2000, tasks: 200, activities: 200}
	least = capacity{workflows: 100, tasks: 8, activities: 16}
)

// A workflow that waits takes workflowSize bytes: half of it is its state and its pending
// activity, half the stack of its coroutine. All that are kept get a quarter of the heap: what the libraries keep takes
// another, and the collector works the more the less is free.
const (
	workflowSize  = 64 << 10
	workflowShare = 4
)

// capacityOf is what a heap of so many bytes is enough for; 0 is a heap without a bound.
func capacityOf(heap int64) capacity {
	if heap == 0 {
		return most
	}
	within := func(least, wanted, most int) int { return max(least, min(wanted, most)) }
	mib := int(heap / mebibyte)
	return capacity{
		workflows:  within(least.workflows, int(heap/workflowShare/workflowSize), most.workflows),
		tasks:      within(least.tasks, mib/2, most.tasks),
		activities: within(least.activities, mib, most.activities),
	}
}

// outsideShare is the part of a process's activities that its second prober may take, where
// the process runs workflows, too: one in so many. It has one kind of work, and is seldom asked.
const outsideShare = 4

// shares are how many activities the roles worker and outside of a process may run at one
// time. Alone each has all; together they have no more, as the memory is of the process,
// and each has at least one.
func shares(cfg config.Config, activities int) (worker, outside int) {
	if !cfg.Plays(config.RoleWorker) || !cfg.Plays(config.RoleOutside) {
		return activities, activities
	}
	outside = max(1, activities/outsideShare)
	return max(1, activities-outside), outside
}

// capacity is what was configured, and else what the memory is enough for.
func (p *process) capacity() capacity { return configured(p.cfg, capacityOf(heapBound())) }

func configured(cfg config.Config, otherwise capacity) capacity {
	return capacity{
		workflows:  cmp.Or(cfg.StickyCacheSize, otherwise.workflows),
		tasks:      cmp.Or(cfg.MaxConcurrentWorkflowTasks, otherwise.tasks),
		activities: cmp.Or(cfg.MaxConcurrentActivities, otherwise.activities),
	}
}
