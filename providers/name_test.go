package providers_test

import (
	"regexp"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/egressfleet/egressfleet/providers"
)

// TestANameNeverChanges pins names that instances out there carry: another one for
// the same UID would make a second instance.
func TestANameNeverChanges(t *testing.T) {
	t.Parallel()
	for uid, want := range map[string]string{
		"":                                     "proxy-4oymiquy7qobjgx3",
		"01f0c0de-0000-7000-8000-000000000001": "proxy-opki5qntwuen7a2p",
	} {
		require.Equal(t, want, providers.NameFromUID(uid), "UID %q", uid)
	}
}

func TestNamesAreLabelsAndApart(t *testing.T) {
	t.Parallel()
	form := regexp.MustCompile(`^proxy-[a-z2-7]{16}$`)
	seen := map[string]string{}
	for i := range 10_000 {
		uid := strconv.Itoa(i)
		name := providers.NameFromUID(uid)
		require.Regexp(t, form, name)
		require.Empty(t, seen[name], "UIDs %s and %s have one name", uid, seen[name])
		seen[name] = uid
	}
}

func TestMarksKeepTheirKeys(t *testing.T) {
	t.Parallel()
	require.Equal(t, []string{
		"proxy-operator-managed", "proxy-operator-uid", "proxy-operator-installation",
		"proxy-operator-owner", "proxy-operator-spec", "true",
	}, []string{
		providers.MarkManaged, providers.MarkUID, providers.MarkInstallation,
		providers.MarkOwner, providers.MarkSpec, providers.MarkManagedYes,
	})
	for key, want := range map[string]bool{
		providers.MarkUID: true, "proxy-operator-": true, "proxy-operator-new": true,
		"proxy": false, "team": false, "": false, "my-proxy-operator-uid": false,
	} {
		require.Equal(t, want, providers.IsMark(key), "%q", key)
	}
	require.Equal(t, "default/paris-1", providers.Owner("default", "paris-1"))
}
