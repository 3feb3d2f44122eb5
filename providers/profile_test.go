package providers_test

import (
	"reflect"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/egressfleet/egressfleet/providers"
)

// TestEveryFieldOfAProfileIsAnAxis fills each field with its own name and looks for
// it among the axes.
func TestEveryFieldOfAProfileIsAnAxis(t *testing.T) {
	t.Parallel()
	var p providers.Profile
	fields := reflect.ValueOf(&p).Elem()
	var want []string
	for i := range fields.NumField() {
		name := fields.Type().Field(i).Name
		fields.Field(i).SetString(name)
		want = append(want, name)
	}
	var got []string
	names := map[string]bool{}
	for _, axis := range p.Axes() {
		got = append(got, axis.Choice)
		require.False(t, names[axis.Name], "the axis %s is there twice", axis.Name)
		names[axis.Name] = true
	}
	require.Equal(t, want, got, "in the contract's order")
	const axes = 19 // of the contract's §4
	require.Len(t, names, axes)
}

func TestAProfileWithoutAnswersHasNone(t *testing.T) {
	t.Parallel()
	for _, axis := range (providers.Profile{}).Axes() {
		require.Empty(t, axis.Choice, axis.Name)
		require.NotEmpty(t, axis.Name)
	}
}
