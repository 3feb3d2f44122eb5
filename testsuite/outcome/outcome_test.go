package outcome

import (
	"context"
	"errors"
	"io"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestOnlyACleanLifeIsASuccess(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		clean bool
		err   error
		code  int
		said  string
	}{
		"clean":              {true, nil, 0, ""},
		"not clean":          {false, nil, 1, ""},
		"it failed":          {false, errors.New("no server"), 1, "gcp: no server\n"},
		"clean, but failing": {true, errors.New("no server"), 1, "gcp: no server\n"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var out, errs strings.Builder
			code := codeOf(t.Context(), "gcp", func(_ context.Context, out io.Writer) (bool, error) {
				_, _ = io.WriteString(out, "the last line\n")
				return c.clean, c.err
			}, &out, &errs)
			require.Equal(t, c.code, code)
			require.Equal(t, c.said, errs.String())
			require.Equal(t, "the last line\n", out.String())
		})
	}
}
