package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/egressfleet/egressfleet/starter/fleet"
)

func TestExitCodes(t *testing.T) {
	t.Parallel()
	notFound := fmt.Errorf("get default/a: %w", fleet.ErrNotFound)
	conflict := fmt.Errorf("apply default/a: %w", &fleet.ConflictError{Field: "spec.provider", Value: "x", Problem: "no"})
	away := fmt.Errorf("list: %w: %w", fleet.ErrUnavailable, errors.New("no route"))
	for name, c := range map[string]struct {
		err  error
		want int
	}{
		"nothing is wrong":               {nil, 0},
		"anything":                       {errors.New("broken"), 1},
		"the command line":               {usagef("no such flag"), 2},
		"no such proxy":                  {notFound, 3},
		"a conflict":                     {conflict, 4},
		"no fleet":                       {away, 5},
		"no worker":                      {fmt.Errorf("timeline: %w", fleet.ErrNoWorker), 5},
		"no server":                      {codedError{errors.New("cannot be reached"), exitUnavailable}, 5},
		"not done in time":               {timeoutf("still there after %s", "5m"), 6},
		"interrupted":                    {fmt.Errorf("%w: %w", fleet.ErrUnavailable, context.Canceled), 130},
		"two of one kind":                {errors.Join(notFound, notFound), 3},
		"one of one kind":                {errors.Join(nil, away), 5},
		"two of two kinds":               {errors.Join(notFound, away), 1},
		"one that is joined in a joined": {errors.Join(errors.Join(notFound, nil), nil), 3},
		"one kind, wrapped":              {fmt.Errorf("drain: %w", errors.Join(conflict)), 4},
		"a joined usage error":           {errors.Join(notFound, usagef("x")), 2},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			require.Equal(t, c.want, ExitCode(io.Discard, c.err))
		})
	}
}

func TestEveryExitCodeHasOneMeaning(t *testing.T) {
	t.Parallel()
	seen := map[int]bool{}
	for _, m := range exitMeanings() {
		require.NotEmpty(t, m.Meaning)
		require.False(t, seen[m.Code], "%d", m.Code)
		seen[m.Code] = true
	}
	require.Len(t, seen, 8)
}
