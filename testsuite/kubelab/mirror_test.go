//go:build linux

package kubelab

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestTheMirrorIsTheOneThatAptUses(t *testing.T) {
	t.Parallel()
	stanza := func(site, codename, label string) string {
		return "MetaKey: main/binary-amd64/Packages\nURI: " + site + "/dists\nCodename: " + codename + "\nLabel: " + label +
			"\nOrigin: Debian\nComponent: main\nSite: " + site + "\n\n"
	}
	const near, far, none = "http://mirror.example.com/debian", "https://deb.example.org/debian", ""
	for name, tc := range map[string]struct{ targets, want string }{
		"the release":             {stanza(near, "bookworm", "Debian"), near},
		"its updates come first":  {stanza(far, "bookworm-updates", "Debian") + stanza(near, "bookworm", "Debian"), near},
		"another release":         {stanza(near, "trixie", "Debian"), near},
		"security is no mirror":   {stanza(far, "bookworm-security", "Debian-Security"), none},
		"somebody else's archive": {stanza(far, "bookworm", "Vendor"), none},
		"a scheme of apt alone":   {stanza("mirror+file:/etc/apt/mirrors", "bookworm", "Debian"), none},
		"no Debian":               {"", none},
	} {
		require.Equal(t, tc.want, mirrorOf(tc.targets, "bookworm"), name)
	}
	require.Equal(t, "http://proxy:3142", assigned("p='http://proxy:3142'\n"))
	require.Empty(t, assigned(""))
}
