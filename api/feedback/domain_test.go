package feedback_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/egressfleet/egressfleet/api/feedback"
	v1 "github.com/egressfleet/egressfleet/api/v1"
)

func TestDomain(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"example.com": "example.com", "WWW.Example.COM": "www.example.com", "example.com.": "example.com",
		"bücher.example": "xn--bcher-kva.example", "BÜCHER.example": "xn--bcher-kva.example",
		"xn--bcher-kva.example": "xn--bcher-kva.example", "localhost": "localhost", "a.co.uk": "a.co.uk",
		"github.io": "github.io", "203.0.113.7": "203.0.113.7",
		"2001:DB8::1": "2001:db8::1", "::ffff:203.0.113.7": "203.0.113.7",
	} {
		got, err := feedback.Domain("for", text)
		require.NoError(t, err, text)
		require.Equal(t, want, got, text)
	}
	for _, text := range []string{
		"", ".", "..", "a b", "com", "COM.", "co.uk", "https://example.com", "example.com:443", "example.com/x",
		"*.example.com", "a..example.com", ".example.com", "-a.example.com", "a_b.example.com\x00",
		strings.Repeat("x", 64) + ".example",
		strings.Repeat("abcdefg.", 40) + "example", "\xff.example", "[::1]",
	} {
		_, err := feedback.Domain("for", text)
		var field *v1.FieldError
		require.ErrorAs(t, err, &field, "%q", text)
		require.Equal(t, "for", field.Field)
		require.Equal(t, text, field.Value)
	}
}
