package providertest

import (
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"log/slog"
	"net/url"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestEveryPrintedSecretIsFound prints a text around a secret in many ways.
func TestEveryPrintedSecretIsFound(t *testing.T) {
	t.Parallel()
	for _, secret := range []string{"s3ntinel-ABCDEFGH", `pass"word\1`, "a\x00\xff\xfebcdefgh", "p@ss/w+rd=1"} {
		for before := range 4 {
			whole := []byte(strings.Repeat("#", before) + secret + "\n")
			quotedJSON, err := json.Marshal(string(whole))
			require.NoError(t, err)
			bytesJSON, err := json.Marshal(whole)
			require.NoError(t, err)
			for name, printed := range map[string]string{
				"%s": string(whole), "%q": fmt.Sprintf("%q", whole), "%x": fmt.Sprintf("%x", whole),
				"%X": fmt.Sprintf("%X", whole), "%v": fmt.Sprintf("%v", whole), "%#v": fmt.Sprintf("%#v", whole),
				"JSON of a text": string(quotedJSON), "JSON of bytes": string(bytesJSON),
				"base64":          base64.StdEncoding.EncodeToString(whole),
				"base64 for URLs": base64.URLEncoding.EncodeToString(whole),
				"hex":             hex.EncodeToString(whole),
				"a query":         url.QueryEscape(string(whole)), "a path": url.PathEscape(string(whole)),
				"a log line":          logged(t, slog.String("body", string(whole))),
				"a log line of bytes": logged(t, slog.Any("body", whole)),
			} {
				found := slices.ContainsFunc(forms([]byte(secret)), func(f form) bool {
					return strings.Contains(printed, f.text)
				})
				require.True(t, found, "%q after %d bytes, printed as %s: %s", secret, before, name, printed)
			}
		}
	}
}

func logged(t *testing.T, attr slog.Attr) string {
	t.Helper()
	w := new(watch)
	w.logger().LogAttrs(t.Context(), slog.LevelDebug-100, "x", attr)
	return w.said()
}

func TestNothingElseIsTakenForASecret(t *testing.T) {
	t.Parallel()
	for _, form := range forms([]byte("hunter2")) {
		require.NotContains(t, "local create provider=here providerID=local/proxy-a cloudInitBytes=7", form.text, form.name)
		require.GreaterOrEqual(t, len(form.text), len("hunter2"), form.name)
	}
}
