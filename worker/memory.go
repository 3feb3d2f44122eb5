package main

import (
	"math"
	"runtime/debug"

	"github.com/KimMachineGun/automemlimit/memlimit"
)

// boundHeap has the collector keep the process within the memory limit of its control
// group: 90 % of it, so that what the collector does not count has room. GOMEMLIMIT, where
// it is set, is stronger. Without a control group there is nothing to keep within.
func boundHeap() { _, _ = memlimit.Set() }

// heapBound is what the collector keeps within, in bytes; 0 where nothing bounds it.
func heapBound() int64 {
	if limit := debug.SetMemoryLimit(-1); limit != math.MaxInt64 {
		return limit
	}
	return 0
}
