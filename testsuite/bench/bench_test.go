package main

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/egressfleet/egressfleet/testsuite/bench/frame"
)

func TestEveryPartCanBeMeasured(t *testing.T) {
	t.Parallel()
	names := map[string]bool{}
	for _, p := range parts() {
		require.NotEmpty(t, p.Name)
		require.False(t, names[p.Name], "%s is there twice", p.Name)
		names[p.Name] = true
		require.NotEmpty(t, p.About, p.Name)
		if p.OneSize == "" {
			require.GreaterOrEqual(t, len(p.Sizes), 3, "%s: growth needs three sizes", p.Name)
		} else {
			require.Len(t, p.Sizes, 1, "%s has one size, since %s", p.Name, p.OneSize)
		}
		require.IsIncreasing(t, p.Sizes, p.Name)
		require.NotNil(t, p.Open, p.Name)
		figures := map[string]bool{}
		for _, f := range p.Figures {
			require.NotEmpty(t, f.Unit, f.Name)
			require.False(t, figures[f.Name], "%s: %s is there twice", p.Name, f.Name)
			figures[f.Name] = true
			if f.At != 0 {
				require.Contains(t, p.Sizes, f.At, "%s: the limit of %s is never judged", p.Name, f.Name)
			}
		}
	}
}

func TestAPartIsNamedAloneOrWithThoseBelowIt(t *testing.T) {
	t.Parallel()
	all := []frame.Part{{Name: "probes"}, {Name: "probes-hanging"}, {Name: "sweep"}, {Name: "probesome"}}
	for name, c := range map[string]struct{ names, want []string }{
		"none is all":          {nil, []string{"probes", "probes-hanging", "sweep", "probesome"}},
		"one and what belongs": {[]string{"probes"}, []string{"probes", "probes-hanging"}},
		"one alone":            {[]string{"probes-hanging"}, []string{"probes-hanging"}},
		"two, in their order":  {[]string{"sweep", "probesome"}, []string{"sweep", "probesome"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			found, err := find(all, c.names)
			require.NoError(t, err)
			var got []string
			for _, p := range found {
				got = append(got, p.Name)
			}
			require.Equal(t, c.want, got)
		})
	}
	_, err := find(all, []string{"soak"})
	require.EqualError(t, err, `"soak" is not a part; there are probes, probes-hanging, sweep, probesome`)
}

func TestTheArguments(t *testing.T) {
	t.Parallel()
	c, dir, names, err := parse([]string{"-sizes", "10,200", "-runs", "3", "-profile", "x", "probes", "sweep"})
	require.NoError(t, err)
	require.Equal(t, []int{10, 200}, c.Sizes)
	require.Equal(t, 3, c.Runs)
	require.Equal(t, "x", dir)
	require.Equal(t, []string{"probes", "sweep"}, names)
	for _, bad := range []string{"", "0", "-1", "a", "1,,2"} {
		_, _, _, err := parse([]string{"-sizes", bad})
		require.ErrorContains(t, err, "is not a size", bad)
	}
}
