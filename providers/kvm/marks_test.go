package kvm

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/egressfleet/egressfleet/providers"
)

func TestMarksSurviveTheXMLOfADomain(t *testing.T) {
	t.Parallel()
	req := request("uid <&>\"'\n\t")
	req.Owner, req.SpecMark = "team-a/<b>", "{\"a\":\"<&>\",\"b\":\"]]>\"}"
	req.Labels = map[string]string{"k": "</egressfleet:instance>"}
	want, err := newMarks(req, "pool", time.Now())
	require.NoError(t, err)
	text, err := guest{name: "x", domainType: domainKVM, network: "n", marks: want}.domainXML()
	require.NoError(t, err)
	got, err := describe(text)
	require.NoError(t, err)
	require.Equal(t, want, got.marks)
	require.Len(t, got.nics, 1)
	require.Equal(t, "n", got.nics[0].network)
	require.Regexp(t, `^52(:[0-9a-f]{2}){5}$`, got.nics[0].mac)
}

func TestWhatIsNotMarkedIsNobodys(t *testing.T) {
	t.Parallel()
	for _, metadata := range []string{
		"", `<instance proxy-operator-managed="true"/>`,
		`<x:instance xmlns:x="https://example.com" proxy-operator-managed="true"/>`,
	} {
		m, err := readMarks(metadata)
		require.NoError(t, err)
		require.Equal(t, marks{}, m)
		require.False(t, m.ours(""))
	}
	require.Empty(t, marks{UID: "u", Installation: installation}.instance("id").UID, "without the managed mark")
	_, err := readMarks("<broken")
	require.Error(t, err)
}

func TestEveryLifeHasAMACOfItsOwn(t *testing.T) {
	t.Parallel()
	seen := map[string]bool{}
	for range 100 {
		text, err := guest{name: "x", domainType: domainKVM, network: "n"}.domainXML()
		require.NoError(t, err)
		d, err := describe(text)
		require.NoError(t, err)
		require.False(t, seen[d.nics[0].mac])
		seen[d.nics[0].mac] = true
	}
}

func TestTheNameOfAVolumeHoldsTheMarks(t *testing.T) {
	t.Parallel()
	for _, want := range []holding{
		{"proxy-x", "3f2b8c1e-uuid", "prod", "team-a/crawler"},
		{"proxy-x", "a/b,c=d%e f", "prod", "x=y,z/%"},
		{"proxy-x", "u", "prod", ""},
	} {
		name, err := want.volume()
		require.NoError(t, err)
		require.NotContains(t, name, "/")
		got, ok := readHolding(name)
		require.True(t, ok, name)
		require.Equal(t, want, got)
	}
	for _, other := range []string{
		"proxy-x.qcow2", "proxy-x-seed.iso", "image-debian-0011.qcow2", "a,b,c.m", "a,b,c,d,e.m", "A,b,c,d.m", "a,%zz,c,d.m",
	} {
		_, ok := readHolding(other)
		require.False(t, ok, other)
	}
}

func TestWhatIsTooLongLeavesTheOwnerOut(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("x", 63)
	h := holding{providers.NameFromUID("u"), "00000000-0000-4000-8000-000000000000", long, long + "/" + long}
	name, err := h.volume()
	require.NoError(t, err)
	got, ok := readHolding(name)
	require.True(t, ok)
	require.Equal(t, h, got, "the longest of all names fits with an UUID")
	h.uid += strings.Repeat("0", 20)
	name, err = h.volume()
	require.NoError(t, err)
	got, _ = readHolding(name)
	require.Empty(t, got.owner)
	require.Equal(t, h.uid, got.uid)
	h.uid = strings.Repeat("0", 300)
	_, err = h.volume()
	require.Equal(t, providers.ErrPermanent, classify(providers.OpCreate, err))
}
