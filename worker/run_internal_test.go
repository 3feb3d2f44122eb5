package main

import (
	"context"
	"errors"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestPartsStopInTheReverseOrderOfTheirStart(t *testing.T) {
	t.Parallel()
	var order []string
	p := &process{failed: make(chan error, 1)}
	for _, name := range []string{"metrics", "temporal", "worker"} {
		p.onStop(func() error {
			order = append(order, name)
			return errors.New(name + " did not like it")
		})
	}
	p.stopAPI = func() error { order = append(order, "api"); return nil }
	err := p.stop()
	require.Equal(t, []string{"api", "worker", "temporal", "metrics"}, order)
	require.ErrorContains(t, err, "worker did not like it")
	require.ErrorContains(t, err, "metrics did not like it")
}

func TestAPartThatEndsByItselfEndsTheProcess(t *testing.T) {
	t.Parallel()
	p := &process{failed: make(chan error, 1)}
	p.onStop(p.background(t.Context(), "API", func(context.Context) error { return errors.New("socket closed") }))
	err := <-p.failed
	require.ErrorContains(t, err, "API: ended by itself")
	require.ErrorContains(t, err, "socket closed")
	require.NoError(t, p.stop(), "it is told once")
}

func TestAPartIsWaitedFor(t *testing.T) {
	t.Parallel()
	p := &process{failed: make(chan error, 1)}
	ended := false
	p.onStop(p.background(t.Context(), "API", func(ctx context.Context) error {
		<-ctx.Done()
		ended = true
		return errors.New("a request was cut off")
	}))
	require.ErrorContains(t, p.stop(), "API: a request was cut off")
	require.True(t, ended)
	require.Empty(t, p.failed)
}
