package kvmlab

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestJoinGroup(t *testing.T) {
	t.Parallel()
	for groups, want := range map[string]string{
		"root:x:0:\nlibvirt:x:113:\n":          "root:x:0:\nlibvirt:x:113:egress\n",
		"libvirt:x:113:ann\nlibvirt-qemu:x:1:": "libvirt:x:113:ann,egress\nlibvirt-qemu:x:1:",
	} {
		got, err := joinGroup(groups, "libvirt", "egress")
		require.NoError(t, err)
		require.Equal(t, want, got)
	}
	_, err := joinGroup("root:x:0:\n", "libvirt", "egress")
	require.ErrorContains(t, err, `no group "libvirt"`)
}

// Two hosts have nothing in common that a packet could confuse.
func TestHostsHaveNetworksOfTheirOwn(t *testing.T) {
	t.Parallel()
	one, two := newHost(1), newHost(2)
	for _, differ := range [][2]string{
		{one.Name, two.Name},
		{one.Address, two.Address},
		{one.Guests, two.Guests},
		{one.Dir, two.Dir},
		{one.networkXML(), two.networkXML()},
	} {
		require.NotEqual(t, differ[0], differ[1])
	}
}
