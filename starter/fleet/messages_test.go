package fleet_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	v1 "github.com/egressfleet/egressfleet/api/v1"
	"github.com/egressfleet/egressfleet/starter/fleet"
)

func TestAMessageThatCannotBeRightIsNotSent(t *testing.T) {
	t.Parallel()
	f, ctx := fleet.New(nil, "test"), t.Context() // which sends nothing
	long := strings.Repeat("x", v1.MaxReason+1)
	for name, c := range map[string]struct {
		field string
		send  func() (v1.Proxy, error)
	}{
		"replace": {"reason", func() (v1.Proxy, error) { return f.Replace(ctx, "default", "a", long, fleet.Request{}) }},
		"retry":   {"reason", func() (v1.Proxy, error) { return f.Retry(ctx, "default", "a", long, fleet.Request{}) }},
		"hold": {"reason", func() (v1.Proxy, error) {
			return f.Hold(ctx, "default", "a", v1.Hold{Reason: long}, fleet.Request{})
		}},
		"hold for": {"for", func() (v1.Proxy, error) {
			return f.Hold(ctx, "default", "a", v1.Hold{For: "forever"}, fleet.Request{})
		}},
		"resume": {"reason", func() (v1.Proxy, error) { return f.Resume(ctx, "default", "a", long, fleet.Request{}) }},
		"delete": {"reason", func() (v1.Proxy, error) { return f.Delete(ctx, "default", "a", long, fleet.Request{}) }},
		"leave": {"reason", func() (v1.Proxy, error) {
			return f.LeaveBehind(ctx, "default", "a", long, fleet.Request{})
		}},
		"leave unsaid": {"reason", func() (v1.Proxy, error) {
			return f.LeaveBehind(ctx, "default", "a", " ", fleet.Request{})
		}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := c.send()
			var field *v1.FieldError
			require.ErrorAs(t, err, &field)
			require.Equal(t, c.field, field.Field)
		})
	}
}
