package local

import (
	"net/netip"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
)

func mustRange(t *testing.T, cidr string) addressRange {
	t.Helper()
	r, err := parseRange(cidr)
	require.NoError(t, err)
	return r
}

func TestCandidatesAreAllUsableAddressesOnce(t *testing.T) {
	t.Parallel()
	for cidr, want := range map[string][]string{
		"127.0.0.1/32":       {"127.0.0.1"},
		"127.64.0.2/31":      {"127.64.0.2", "127.64.0.3"},
		"127.64.0.0/30":      {"127.64.0.1", "127.64.0.2"},
		"127.0.0.0/29":       {"127.0.0.2", "127.0.0.3", "127.0.0.4", "127.0.0.5", "127.0.0.6"}, // not the others' own
		"127.255.255.252/30": {"127.255.255.253", "127.255.255.254"},
	} {
		t.Run(cidr, func(t *testing.T) {
			t.Parallel()
			r := mustRange(t, cidr)
			var got []string
			for a := range r.candidates("proxy-a") {
				got = append(got, a.String())
			}
			require.ElementsMatch(t, want, got)
			require.Equal(t, len(want), r.capacity())
			require.Equal(t, len(want) == 1, r.single())
		})
	}
}

func TestCandidatesDependOnTheNameAlone(t *testing.T) {
	t.Parallel()
	r := mustRange(t, linuxRange)
	first := func(name string) netip.Addr { return slices.Collect(r.candidates(name))[0] }
	require.Equal(t, "127.116.179.28", first("proxy-a").String(), "also in the next release")
	require.NotEqual(t, first("proxy-a"), first("proxy-b"))
	require.True(t, r.prefix.Contains(first("proxy-a")))
}

func TestCandidatesAreBounded(t *testing.T) {
	t.Parallel()
	n := 0
	for range mustRange(t, "127.0.0.0/8").candidates("proxy-a") {
		n++
	}
	require.LessOrEqual(t, n, maxCandidates)
	require.Equal(t, 1<<24-3, mustRange(t, "127.0.0.0/8").capacity())
}

func TestDefaultRangesAreGood(t *testing.T) {
	t.Parallel()
	require.False(t, mustRange(t, linuxRange).single())
	require.True(t, mustRange(t, otherRange).single())
}
