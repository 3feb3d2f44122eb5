package v1_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	v1 "github.com/egressfleet/egressfleet/api/v1"
)

func TestMessagesNameWhatCannotBeRight(t *testing.T) {
	t.Parallel()
	longest := strings.Repeat("é", v1.MaxReason/2)
	for name, c := range map[string]struct {
		message interface{ Validate() error }
		field   string // empty: it is right
	}{
		"nothing is said":                     {v1.Why{}, ""},
		"a reason of the longest":             {v1.Why{Reason: longest}, ""},
		"a reason of a byte too many":         {v1.Why{Reason: longest + "x"}, "reason"},
		"a hold until it is resumed":          {v1.Hold{Reason: "Bill"}, ""},
		"a hold of an hour":                   {v1.Hold{For: "1h"}, ""},
		"a hold of the shortest":              {v1.Hold{For: v1.Duration(v1.MinHold.String())}, ""},
		"a hold of the longest":               {v1.Hold{For: v1.Duration(v1.MaxHold.String())}, ""},
		"a hold of more than a year":          {v1.Hold{For: "8760h0m1s"}, "for"},
		"a hold of less than a second":        {v1.Hold{For: "999ms"}, "for"},
		"a hold of no time":                   {v1.Hold{For: "0s"}, "for"},
		"a hold that ended before":            {v1.Hold{For: "-1h"}, "for"},
		"a hold without a unit":               {v1.Hold{For: "60"}, "for"},
		"a hold with too long a reason":       {v1.Hold{Reason: longest + "x", For: "1h"}, "reason"},
		"a delete without a reason":           {v1.Deletion{}, ""},
		"a delete that leaves and says why":   {v1.Deletion{Reason: "the zone is gone", SkipCleanup: true}, ""},
		"a delete that leaves without saying": {v1.Deletion{SkipCleanup: true}, "reason"},
		"a delete that leaves with a blank":   {v1.Deletion{Reason: " \t", SkipCleanup: true}, "reason"},
		"a delete with too long a reason":     {v1.Deletion{Reason: longest + "x", SkipCleanup: true}, "reason"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			err := c.message.Validate()
			if c.field == "" {
				require.NoError(t, err)
				return
			}
			var field *v1.FieldError
			require.ErrorAs(t, err, &field)
			require.Equal(t, c.field, field.Field)
		})
	}
}
