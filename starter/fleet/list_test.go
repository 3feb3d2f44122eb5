package fleet_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	v1 "github.com/egressfleet/egressfleet/api/v1"
	"github.com/egressfleet/egressfleet/starter/fleet"
)

func TestANamespaceThatIsNoneIsNotAskedFor(t *testing.T) {
	t.Parallel()
	for _, bad := range []string{"Default", "a' OR WorkflowType = 'x", "a/b", "-"} {
		_, err := fleet.New(nil, "test").List(t.Context(), bad)
		var field *v1.FieldError
		require.ErrorAs(t, err, &field)
		require.Equal(t, "metadata.namespace", field.Field)
		require.Equal(t, bad, field.Value)
	}
}
