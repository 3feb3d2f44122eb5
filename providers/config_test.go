package providers_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/egressfleet/egressfleet/providers"
)

func TestALocationFitsIntoAnID(t *testing.T) {
	t.Parallel()
	for value, problem := range map[string]string{
		"host-1.example.com": "", "europe-west1-b": "", "10.0.0.7": "", "[2001:db8::7]": "",
		"":         "is empty",
		"rack/1":   `holds "/"`,
		"/":        `holds "/"`,
		"rack 1":   "holds a space",
		"rack\n1":  "control character",
		"rack\x7f": "control character",
	} {
		err := providers.CheckLocation("hosts[1].name", value)
		if problem == "" {
			require.NoError(t, err, value)
			continue
		}
		require.ErrorContains(t, err, `hosts[1].name: "`, value)
		require.ErrorContains(t, err, problem, value)
	}
}

func TestAFileNameIsSafe(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("a", 128)
	for _, good := range []string{"debian-13", "Debian_13.qcow2", "9front", "a", long} {
		require.NoError(t, providers.CheckFileName("images", good), good)
	}
	for _, bad := range []string{
		"", ".", "..", ".hidden", "../etc/passwd", "a/b", `a\b`, "-rf", "a b", "a\nb", "a\x00", "é", "a:b", long + "a",
	} {
		err := providers.CheckFileName("images", bad)
		require.ErrorContains(t, err, `images: "`, bad)
		require.ErrorContains(t, err, "is not safe as a file name", bad)
	}
}
