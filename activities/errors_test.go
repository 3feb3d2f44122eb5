package activities_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/temporal"
	sdktest "go.temporal.io/sdk/testsuite"

	"github.com/egressfleet/egressfleet/activities"
	v1 "github.com/egressfleet/egressfleet/api/v1"
	"github.com/egressfleet/egressfleet/providers"
)

// overTheWire returns what a workflow would get of an activity's error.
func overTheWire(t *testing.T, fail func(context.Context) error) error {
	t.Helper()
	env := new(sdktest.WorkflowTestSuite).NewTestActivityEnvironment()
	env.RegisterActivity(fail)
	_, err := env.ExecuteActivity(fail)
	require.Error(t, err)
	return err
}

func TestTheClassSurvivesTheWire(t *testing.T) {
	t.Parallel()
	for _, class := range providers.Classes() {
		t.Run(string(class), func(t *testing.T) {
			t.Parallel()
			sent := providers.Wrap(class, providers.OpGet, "x", "loc/a", errors.New("backend said no"))
			err := overTheWire(t, func(context.Context) error {
				return activities.ToApplicationError(fmt.Errorf("around: %w", sent))
			})
			require.Equal(t, class, activities.ErrorClass(err))
			require.Contains(t, activities.FaultOf(err).Text, "backend said no")
			var app *temporal.ApplicationError
			require.ErrorAs(t, err, &app)
			require.Equal(t, class != providers.ErrTransient, app.NonRetryable(), "only Transient is retried by the server")
		})
	}
}

func TestTheReasonSurvivesTheWire(t *testing.T) {
	t.Parallel()
	foreign := providers.Wrap(providers.ErrPermanent, providers.OpCreate, "x", "loc/a", &providers.ForeignError{})
	err := overTheWire(t, func(context.Context) error { return activities.ToApplicationError(foreign) })
	require.Equal(t, v1.ReasonForeignInstance, activities.FaultOf(err).Reason)
	plain := providers.Wrap(providers.ErrPermanent, providers.OpCreate, "x", "loc/a", errors.New("no"))
	err = overTheWire(t, func(context.Context) error { return activities.ToApplicationError(plain) })
	require.Empty(t, activities.FaultOf(err).Reason)

	err = activities.ToApplicationError(providers.Wrap(providers.ErrPermanent, providers.OpDelete, "p", "x/y",
		&providers.LeftBehindError{Place: "host x"}))
	require.Equal(t, v1.ReasonLeftBehind, activities.FaultOf(err).Reason)
}

func TestWhatHasNoClassIsTransient(t *testing.T) {
	t.Parallel()
	for name, err := range map[string]error{
		"a panic":      temporal.NewApplicationError("boom", "PanicError"),
		"a plain text": errors.New("plain"),
		"a timeout":    temporal.NewTimeoutError(0, nil),
	} {
		f := activities.FaultOf(err)
		require.Equal(t, providers.ErrTransient, f.Class, name)
		require.NotEmpty(t, f.Text, name)
	}
	require.NoError(t, activities.ToApplicationError(nil))
}

func TestALongTextIsCut(t *testing.T) {
	t.Parallel()
	long := providers.Wrap(providers.ErrPermanent, providers.OpGet, "x", "", errors.New(strings.Repeat("é", 5000)))
	text := activities.FaultOf(activities.ToApplicationError(long)).Text
	require.LessOrEqual(t, len(text), 1100)
	require.True(t, strings.HasSuffix(text, "é…"), "no half character")
}

// TestWhatIsNotPreparedIsNotTriedAgain: only a Prepare can help, and only the workflow
// asks for one.
func TestWhatIsNotPreparedIsNotTriedAgain(t *testing.T) {
	t.Parallel()
	lacking := providers.Wrap(providers.ErrTransient, providers.OpCreate, "x", "loc/a",
		&providers.NotPreparedError{What: "image debian-12 on host-a"})
	err := overTheWire(t, func(context.Context) error { return activities.ToApplicationError(lacking) })
	require.Equal(t, activities.Fault{
		Class: providers.ErrTransient, Reason: v1.ReasonNotPrepared, Text: "image debian-12 on host-a",
	}, activities.FaultOf(err))
	var app *temporal.ApplicationError
	require.ErrorAs(t, err, &app)
	require.True(t, app.NonRetryable())
}
