package providers_test

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/egressfleet/egressfleet/providers"
)

func TestTheClassesKeepTheirWords(t *testing.T) {
	t.Parallel()
	var words []string
	for _, class := range providers.Classes() {
		words = append(words, class.Error())
	}
	require.Equal(t, []string{"NotFound", "QuotaExceeded", "Transient", "Permanent"}, words)
}

func TestAnErrorIsItsClassAndItsCause(t *testing.T) {
	t.Parallel()
	cause := &fs.PathError{Op: "open", Path: "disk", Err: fs.ErrNotExist}
	for _, class := range providers.Classes() {
		err := fmt.Errorf("activity: %w", providers.Wrap(class, providers.OpGet, "lab", "z/a", cause))
		for _, other := range providers.Classes() {
			require.Equal(t, class == other, errors.Is(err, other), "%s is %s", class, other)
		}
		require.ErrorIs(t, err, fs.ErrNotExist)
		var path *fs.PathError
		require.ErrorAs(t, err, &path)
		require.Equal(t, class, providers.ClassOf(err))
	}
}

func TestAnErrorSaysWhatFailedBeforeWhy(t *testing.T) {
	t.Parallel()
	cause := errors.New("no capacity in zone a")
	require.EqualError(t, providers.Wrap(providers.ErrQuotaExceeded, providers.OpCreate, "lab", "z/a", cause),
		"lab: create z/a: QuotaExceeded: no capacity in zone a")
	require.EqualError(t, providers.Wrap(providers.ErrTransient, providers.OpList, "lab", "", cause),
		"lab: list: Transient: no capacity in zone a")
}

func TestWhatHasNoClassIsTransient(t *testing.T) {
	t.Parallel()
	inner := providers.Wrap(providers.ErrPermanent, "get", "lab", "", fs.ErrExist)
	for name, c := range map[string]struct {
		err  error
		want providers.Class
	}{
		"no error":                      {nil, ""},
		"an error of somebody else":     {errors.New("socket hang up"), providers.ErrTransient},
		"an ended context":              {context.Canceled, providers.ErrTransient},
		"a bare class, which is no one": {providers.ErrPermanent, providers.ErrTransient},
		"the outermost of two": {
			providers.Wrap(providers.ErrTransient, "get", "lab", "", inner), providers.ErrTransient,
		},
	} {
		require.Equal(t, c.want, providers.ClassOf(c.err), name)
	}
}

func TestALateFailureOfACreateIsToldFromAFailedRead(t *testing.T) {
	t.Parallel()
	for op, want := range map[string]bool{
		providers.OpCreate: true, providers.OpGet: false, providers.OpDelete: false, providers.OpList: false,
	} {
		err := providers.Wrap(providers.ErrPermanent, op, "lab", "z/a", errors.New("no such image"))
		require.Equal(t, want, providers.IsCreateFailed(fmt.Errorf("look: %w", err)), op)
	}
	require.False(t, providers.IsCreateFailed(nil))
	require.False(t, providers.IsCreateFailed(errors.New("create")))
}
