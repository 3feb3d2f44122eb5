package providers_test

import (
	"context"
	"errors"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/egressfleet/egressfleet/providers"
)

// bare has the four methods, which nobody calls here.
type bare struct{ providers.Provider }

// checked has a Checker and can be closed.
type checked struct {
	bare
	name   string
	closed *int
}

func (c checked) Check(context.Context) []providers.TargetStatus {
	return []providers.TargetStatus{{Target: c.name}}
}

func (c checked) Close() error {
	*c.closed++
	return errors.New("closed " + c.name)
}

// decorator hides what it wraps behind the four methods, but for Unwrap.
type decorator struct{ providers.Provider }

func (d decorator) Unwrap() providers.Provider { return d.Provider }

func TestAsFindsTheOutermostThatHasIt(t *testing.T) {
	t.Parallel()
	inner := checked{name: "inner", closed: new(int)}
	for name, c := range map[string]struct {
		stack providers.Provider
		want  string // the target of the Checker that is found
	}{
		"in the provider itself":        {inner, "inner"},
		"under one decorator":           {decorator{inner}, "inner"},
		"under two":                     {decorator{decorator{inner}}, "inner"},
		"nowhere":                       {decorator{bare{}}, ""},
		"not in nothing":                {nil, ""},
		"not under what does not say":   {bare{inner}, ""},
		"not at the end of a decorator": {decorator{nil}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			found, ok := providers.As[providers.Checker](c.stack)
			require.Equal(t, c.want != "", ok)
			if ok {
				require.Equal(t, c.want, found.Check(t.Context())[0].Target)
			}
		})
	}
}

func TestCloseClosesWhatCanBeClosed(t *testing.T) {
	t.Parallel()
	closed := 0
	err := providers.Close(decorator{checked{name: "inner", closed: &closed}})
	require.EqualError(t, err, "closed inner")
	require.Equal(t, 1, closed)
	require.NoError(t, providers.Close(decorator{bare{}}))
}
