package providertest

import (
	"context"
	"errors"

	"github.com/stretchr/testify/require"

	"github.com/egressfleet/egressfleet/providers"
)

func errorRows() []Row {
	return []Row{
		{
			Name: "ErrorsSayWhatFailed", Section: "5", run: errorsSayWhatFailed,
			Breaks: "metrics and spans are labelled by the class, the workflow branches on it, people read the rest",
		},
	}
}

// mustBe checks an error's form and class.
func (s *scene) mustBe(err error, op string, class providers.Class) {
	s.Helper()
	require.Error(s, err, op)
	e, ok := errors.AsType[*providers.Error](err)
	require.True(s, ok, "%s returns %T, want *providers.Error: %v", op, err, err)
	require.Equal(s, class, e.Class, "class of: %v", err)
	require.ErrorIs(s, err, class)
	require.Equal(s, op, e.Op, "operation of: %v", err)
	require.Error(s, e.Err, "the backend's own error is kept in: %v", err)
	if s.suite.Name != "" {
		require.Equal(s, s.suite.Name, e.Provider, "provider of: %v", err)
	}
	require.NotEmpty(s, e.Provider, "provider of: %v", err)
	if op == providers.OpGet || op == providers.OpDelete {
		require.NotEmpty(s, e.ID, "ID of: %v", err)
	}
}

func errorsSayWhatFailed(s *scene) {
	held, _ := s.created()
	held.UID += "-other"
	for _, id := range s.neverWas() {
		for _, c := range s.calls(held, id) {
			switch c.op {
			case providers.OpCreate:
				s.mustBe(c.run(s.Context()), c.op, providers.ErrPermanent)
			case providers.OpGet:
				s.mustBe(c.run(s.Context()), c.op, providers.ErrNotFound)
			}
		}
	}
	const malformed = "not an ID"
	for _, c := range s.calls(held, malformed)[1:] {
		if c.op != providers.OpList {
			s.mustBe(c.run(s.Context()), c.op, providers.ErrPermanent)
		}
	}
	ended, cancel := context.WithCancel(s.Context())
	cancel()
	for _, c := range s.calls(held, malformed) {
		if c.op == providers.OpList {
			s.mustBe(c.run(ended), c.op, providers.ErrTransient)
		}
	}
}
