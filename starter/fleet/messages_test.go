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
		"replace": {"reason", func() (v1.Proxy, error) { return f.Replace(ctx, "default", "a", long, "") }},
		"retry":   {"reason", func() (v1.Proxy, error) { return f.Retry(ctx, "default", "a", long, "") }},
		"hold":    {"reason", func() (v1.Proxy, error) { return f.Hold(ctx, "default", "a", v1.Hold{Reason: long}, "") }},
		"hold for": {"for", func() (v1.Proxy, error) {
			return f.Hold(ctx, "default", "a", v1.Hold{For: "forever"}, "")
		}},
		"resume":       {"reason", func() (v1.Proxy, error) { return f.Resume(ctx, "default", "a", long, "") }},
		"delete":       {"reason", func() (v1.Proxy, error) { return f.Delete(ctx, "default", "a", long) }},
		"leave":        {"reason", func() (v1.Proxy, error) { return f.LeaveBehind(ctx, "default", "a", long) }},
		"leave unsaid": {"reason", func() (v1.Proxy, error) { return f.LeaveBehind(ctx, "default", "a", " ") }},
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
