package kvm

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/egressfleet/egressfleet/providers"
)

func TestAWrongConfigurationNamesFieldAndValue(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		change func(*Config)
		says   []string
	}{
		"a domain type": {func(c *Config) { c.DomainType = "xen" }, []string{"domainType", `"xen"`}},
		"no hosts":      {func(c *Config) { c.Hosts = nil }, []string{"hosts", "empty"}},
		"a host's name": {
			func(c *Config) { c.Hosts[1].Name = "b/domains/x" }, []string{"hosts[1].name", `"b/domains/x"`},
		},
		"a name twice":   {func(c *Config) { c.Hosts[1].Name = "a" }, []string{"hosts[1].name", `"a"`, "hosts[0]"}},
		"no user":        {func(c *Config) { c.Hosts[0].User = "" }, []string{"hosts[0].user"}},
		"no address":     {func(c *Config) { c.Hosts[0].Address = "" }, []string{"hosts[0].address"}},
		"no key":         {func(c *Config) { c.Hosts[0].KeyFile = "" }, []string{"hosts[0].keyFile"}},
		"no known hosts": {func(c *Config) { c.Hosts[0].KnownHostsFile = "" }, []string{"hosts[0].knownHostsFile"}},
		"a transport":    {func(c *Config) { c.Hosts[0].Transport = "telnet" }, []string{"hosts[0]", `"telnet"`}},
		"a pool":         {func(c *Config) { c.Hosts[0].Pool = "../etc" }, []string{"hosts[0].pool", `"../etc"`}},
		"a network":      {func(c *Config) { c.Hosts[0].Network = "<x/>" }, []string{"hosts[0].network", `"<x/>"`}},
		"a bridge":       {func(c *Config) { c.Hosts[0].Bridge = "br 0" }, []string{"hosts[0].bridge", `"br 0"`}},
		"network and bridge": {
			func(c *Config) { c.Hosts[0].Network, c.Hosts[0].Bridge = "n", "b" }, []string{"hosts[0]", `"n"`, `"b"`},
		},
		"a range": {
			func(c *Config) { c.Hosts[0].AddressRange = "192.0.2.0" }, []string{"hosts[0].addressRange", `"192.0.2.0"`},
		},
		"a zone":   {func(c *Config) { c.Hosts[0].Zone = "A" }, []string{"hosts[0].zone", `"A"`}},
		"a region": {func(c *Config) { c.Hosts[0].Region = "a/b" }, []string{"hosts[0].region", `"a/b"`}},
		"a zone that is another host": {
			func(c *Config) { c.Hosts[0].Zone = "b" }, []string{"hosts[0].zone", `"b"`, "hosts[1]"},
		},
		"no images":       {func(c *Config) { c.Images = nil }, []string{"images", "empty"}},
		"an image's name": {func(c *Config) { c.Images["../x"] = c.Images[debian] }, []string{"images", `"../x"`}},
		"a digest": {
			func(c *Config) { setImage(c, func(i *ImageConfig) { i.SHA256 = "123" }) },
			[]string{"images.debian.sha256", `"123"`},
		},
		"no digest": {
			func(c *Config) { setImage(c, func(i *ImageConfig) { i.SHA256 = "" }) }, []string{"images.debian.sha256", `""`},
		},
		"a format": {
			func(c *Config) { setImage(c, func(i *ImageConfig) { i.Format = "vmdk" }) },
			[]string{"images.debian.format", `"vmdk"`},
		},
		"two sources": {
			func(c *Config) { setImage(c, func(i *ImageConfig) { i.File = "/x" }) }, []string{"images.debian", "url", "file"},
		},
		"no source": {
			func(c *Config) { setImage(c, func(i *ImageConfig) { i.URL = "" }) }, []string{"images.debian", "url", "file"},
		},
		"a relative file": {
			func(c *Config) { setImage(c, func(i *ImageConfig) { i.URL, i.File = "", "x" }) },
			[]string{"images.debian.file", `"x"`},
		},
		"a scheme": {
			func(c *Config) { setImage(c, func(i *ImageConfig) { i.URL = "ftp://x/y" }) },
			[]string{"images.debian", "url", "ftp://x/y"},
		},
		"no machines": {func(c *Config) { c.MachineTypes = nil }, []string{"machineTypes", "empty"}},
		"no memory": {
			func(c *Config) { setMachine(c, MachineTypeConfig{}) }, []string{"machineTypes.small.memory", `""`},
		},
		"little memory": {
			func(c *Config) { setMachine(c, MachineTypeConfig{Memory: "1Mi"}) }, []string{"machineTypes.small.memory", `"1Mi"`},
		},
		"a unit": {
			func(c *Config) { setMachine(c, MachineTypeConfig{Memory: "1G"}) }, []string{"machineTypes.small.memory", `"1G"`},
		},
		"a negative size": {
			func(c *Config) { setMachine(c, MachineTypeConfig{Memory: "-1Gi"}) },
			[]string{"machineTypes.small.memory", `"-1Gi"`},
		},
		"a huge size": {
			func(c *Config) { setMachine(c, MachineTypeConfig{Memory: "99999999Ti"}) }, []string{"machineTypes.small.memory"},
		},
		"a disk": {
			func(c *Config) { setMachine(c, MachineTypeConfig{Memory: "1Gi", Disk: "x"}) },
			[]string{"machineTypes.small.disk", `"x"`},
		},
		"processors": {
			func(c *Config) { setMachine(c, MachineTypeConfig{Memory: "1Gi", VCPUs: -1}) },
			[]string{"machineTypes.small.vcpus", "-1"},
		},
		"a reserve":       {func(c *Config) { c.Reserve.Pool = "x" }, []string{"reserve.pool", `"x"`}},
		"another reserve": {func(c *Config) { c.Reserve.Memory = "x" }, []string{"reserve.memory", `"x"`}},
	} {
		cfg := newLab("a", "b").cfg
		c.change(&cfg)
		_, err := cfg.resolve()
		require.Error(t, err, name)
		for _, word := range c.says {
			require.ErrorContains(t, err, word, name)
		}
	}
}

func setImage(c *Config, change func(*ImageConfig)) {
	i := c.Images[debian]
	change(&i)
	c.Images[debian] = i
}

func setMachine(c *Config, m MachineTypeConfig) { c.MachineTypes[smallMachine] = m }

func TestAURLWithAPasswordIsNotQuoted(t *testing.T) {
	t.Parallel()
	cfg := newLab("a").cfg
	setImage(&cfg, func(i *ImageConfig) { i.URL = "ftp://user:s3ntinel@x/y" })
	_, err := cfg.resolve()
	require.Error(t, err)
	require.NotContains(t, err.Error(), "s3ntinel")
}

func TestDefaultsAreFilledIn(t *testing.T) {
	t.Parallel()
	s, err := newLab("a").cfg.resolve()
	require.NoError(t, err)
	require.Equal(t, domainKVM, s.domainType)
	require.Equal(t, "a.example.com:22", s.hosts[0].Address)
	require.Equal(t, defaultPool, s.hosts[0].Pool)
	require.Equal(t, defaultNetwork, s.hosts[0].Network)
	require.Equal(t, machine{1, 512 * mib, 10 << 30}, s.machines[smallMachine])
	require.Equal(t, formatQCOW2, s.images[debian].Format)
}

func TestIDsAreParsedStrictly(t *testing.T) {
	t.Parallel()
	host, name, err := parseID(formatID("nas1", "proxy-x"))
	require.NoError(t, err)
	require.Equal(t, "nas1 proxy-x", host+" "+name)
	for _, id := range []string{
		"", "hosts/a/domains/", "hosts//domains/x", "hosts/a/domains/x/", "hosts/a/domains/x/domains/y", "a/domains/x",
		"hosts/a/volumes/x", "Hosts/a/domains/x", "hosts/a/domains/X", "hosts/a/domains/..", "hosts/a.b/domains/x",
		" hosts/a/domains/x", "hosts/a/domains/x\n", "hosts/a/x",
	} {
		_, _, err := parseID(id)
		require.Equal(t, providers.ErrPermanent, classify(providers.OpGet, err), "%q", id)
	}
}
