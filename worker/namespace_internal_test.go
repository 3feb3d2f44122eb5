package main

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"go.temporal.io/api/serviceerror"

	"github.com/egressfleet/egressfleet/testsuite/output"
)

func TestANamespaceThatIsNotThereYetIsWaitedFor(t *testing.T) {
	t.Parallel()
	other := errors.New("no such search attribute")
	for name, row := range map[string]struct {
		unknown int   // so many times
		how     error // nil: the namespace is
		then    error // what the step says after that
		calls   int
		took    time.Duration
		says    string // in the log, once
		err     string
	}{
		"it is there": {calls: 1},
		"it comes":    {unknown: 3, calls: 4, took: 3 * dialPause, says: "does not know the namespace yet"},
		"it never comes": {
			unknown: 100, calls: 6, took: 11 * time.Second, says: "namespace=crawl",
			err: `temporal.namespace: "crawl": Temporal did not get to know it within 11s`,
		},
		"a server is busy, once": {
			unknown: 1, how: serviceerror.NewDeadlineExceeded("busy"), calls: 2, took: dialPause, says: "not answer in time",
		},
		"something else is wrong": {then: other, calls: 1, err: other.Error()},
		"it comes, and something else is wrong": {
			unknown: 1, then: other, calls: 2, took: dialPause, says: "waitingFor=11s", err: other.Error(),
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				out, calls, from := new(output.Log), 0, time.Now()
				err := awaitNamespace(t.Context(), "crawl", 11*time.Second, slog.New(slog.NewTextHandler(out, nil)),
					func(context.Context) error {
						if calls++; calls <= row.unknown {
							return cmp.Or(row.how, error(serviceerror.NewNamespaceNotFound("crawl")))
						}
						return row.then
					})
				if row.err == "" {
					require.NoError(t, err)
				} else {
					require.ErrorContains(t, err, row.err)
				}
				require.Equal(t, row.calls, calls)
				require.Equal(t, row.took, time.Since(from))
				require.Equal(t, min(1, row.unknown), strings.Count(out.String(), "\n"), "it is said once")
				require.Contains(t, out.String(), row.says)
			})
		})
	}
}
