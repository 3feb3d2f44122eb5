package local_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/egressfleet/egressfleet/providers/local"
)

func TestNewRefusesABadConfiguration(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "file")
	require.NoError(t, os.WriteFile(file, nil, 0o600))
	good := local.Config{Dir: t.TempDir()}
	with := func(change func(*local.Config)) local.Config {
		cfg := good
		change(&cfg)
		return cfg
	}
	for name, c := range map[string]struct {
		name, installation string
		cfg                local.Config
		says               []string
	}{
		"a name that is no label":           {"Not_A_Label", "x", good, []string{"name", "Not_A_Label"}},
		"a name that climbs out of the dir": {"..", "x", good, []string{"name", ".."}},
		"an installation that is no label":  {"x", "", good, []string{"installation", `""`}},
		"no dir":                            {"x", "x", with(func(c *local.Config) { c.Dir = "" }), []string{"dir", `""`}},
		"a dir that is a file":              {"x", "x", with(func(c *local.Config) { c.Dir = file }), []string{"dir", file}},
		"a range that is no CIDR": {
			"x", "x", with(func(c *local.Config) { c.AddressRange = "127.0.0.1" }), []string{"addressRange", "127.0.0.1"},
		},
		"a range outside the loopback": {
			"x", "x", with(func(c *local.Config) { c.AddressRange = "10.0.0.0/8" }), []string{"addressRange", "10.0.0.0/8"},
		},
		"a range wider than the loopback": {
			"x", "x", with(func(c *local.Config) { c.AddressRange = "126.0.0.0/7" }), []string{"addressRange", "126.0.0.0/7"},
		},
		"a range of IPv6": {
			"x", "x", with(func(c *local.Config) { c.AddressRange = "::1/128" }), []string{"addressRange", "::1/128"},
		},
		"a range that begins in the middle": {
			"x", "x", with(func(c *local.Config) { c.AddressRange = "127.1.2.3/10" }), []string{"127.1.2.3/10", "127.0.0.0/10"},
		},
		"an executable that is not there": {
			"x", "x", with(func(c *local.Config) { c.Executable = "/no/such" }), []string{"executable", "/no/such"},
		},
		"an executable that cannot be run": {
			"x", "x", with(func(c *local.Config) { c.Executable = file }), []string{"executable", file},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p, err := local.New(t.Context(), c.name, c.installation, c.cfg)
			require.Error(t, err)
			require.Nil(t, p)
			for _, word := range c.says {
				require.ErrorContains(t, err, word)
			}
		})
	}
}

func TestNewTouchesNothing(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "not", "there", "yet")
	_, err := local.New(t.Context(), providerName, installation, local.Config{Dir: dir})
	require.NoError(t, err)
	require.NoDirExists(t, filepath.Dir(dir))
}

func TestARelativeDirStaysWhereItWas(t *testing.T) {
	dir := t.TempDir()
	t.Chdir(dir)
	l := newLab(t, func(cfg *local.Config) { cfg.Dir = "instances" })
	id := l.create(request("u"))
	t.Chdir(t.TempDir())
	require.Equal(t, id, l.get(id).ID)
	require.DirExists(t, filepath.Join(dir, "instances", providerName))
	t.Chdir(dir) // the lab cleans up by the relative path
}
