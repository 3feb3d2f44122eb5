package main

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/egressfleet/egressfleet/internal/config"
)

func TestTheHeapLeavesRoomForTheProgram(t *testing.T) {
	t.Parallel()
	for name, row := range map[string]struct{ limit, program, heap int64 }{ // MiB
		"a small limit is shared with the program":            {limit: 192, program: 60, heap: 126},
		"a large one leaves a tenth, as there is room enough": {limit: 2560, program: 60, heap: 2304},
		"the limit of the chart":                              {limit: 128, program: 62, heap: 64},
		"a program that is larger than half of it":            {limit: 128, program: 120, heap: 64},
		"a program that is larger than all of it":             {limit: 64, program: 80, heap: 32},
		"a program whose size cannot be told":                 {limit: 320, program: 0, heap: 288},
		"no limit at all":                                     {},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			require.Equal(t, row.heap*mebibyte, heapOf(row.limit*mebibyte, row.program*mebibyte))
		})
	}
}

func TestTheProgramKnowsItsSize(t *testing.T) {
	t.Parallel()
	require.Greater(t, programSize(), int64(mebibyte))
}

func TestTheCapacityFollowsFromTheHeap(t *testing.T) {
	t.Parallel()
	for name, row := range map[string]struct {
		heap int64 // MiB
		want capacity
	}{
		"nothing bounds it":      {0, capacity{workflows: 2000, tasks: 200, activities: 200}},
		"the heap of the chart":  {64, capacity{workflows: 256, tasks: 32, activities: 64}},
		"twice of that":          {128, capacity{workflows: 512, tasks: 64, activities: 128}},
		"more than there is for": {4096, capacity{workflows: 2000, tasks: 200, activities: 200}},
		"hardly anything":        {8, capacity{workflows: 100, tasks: 8, activities: 16}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			require.Equal(t, row.want, capacityOf(row.heap*mebibyte))
		})
	}
}

func TestWhatIsConfiguredIsStronger(t *testing.T) {
	t.Parallel()
	memory := capacity{workflows: 1, tasks: 2, activities: 3}
	require.Equal(t, memory, configured(config.Config{}, memory))
	require.Equal(t, capacity{workflows: 7, tasks: 2, activities: 3},
		configured(config.Config{StickyCacheSize: 7}, memory))
	require.Equal(t, capacity{workflows: 1, tasks: 8, activities: 9},
		configured(config.Config{MaxConcurrentWorkflowTasks: 8, MaxConcurrentActivities: 9}, memory))
}

func TestTheRolesOfAProcessShareItsActivities(t *testing.T) {
	t.Parallel()
	both := []config.Role{config.RoleWorker, config.RoleOutside}
	for name, row := range map[string]struct {
		roles                       []config.Role
		activities, worker, outside int
	}{
		"a worker alone has all":          {both[:1], 64, 64, 64},
		"a second prober alone has all":   {both[1:], 64, 64, 64},
		"together they have no more":      {both, 64, 48, 16},
		"also of a number that is odd":    {both, 7, 6, 1},
		"each has one of two":             {both, 2, 1, 1},
		"each has one where there is one": {both, 1, 1, 1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			worker, outside := shares(config.Config{Roles: row.roles}, row.activities)
			require.Equal(t, []int{row.worker, row.outside}, []int{worker, outside})
		})
	}
}
