package main

import (
	"bytes"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/egressfleet/egressfleet/providers"
	"github.com/egressfleet/egressfleet/testsuite/gcefake"
)

func came(uid, zone string) gcefake.Happening {
	return gcefake.Happening{
		Came: true, Place: gcefake.Place{Zone: zone, Name: uid}, Labels: map[string]string{providers.MarkUID: uid},
	}
}

func went(uid, zone string) gcefake.Happening {
	h := came(uid, zone)
	h.Came = false
	return h
}

func TestJudge(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		e    evidence
		want verdict
	}{
		"one after the other": {
			evidence{History: []gcefake.Happening{came("u", "a"), went("u", "a"), came("u", "b")}}, verdict{},
		},
		"two at once, in two zones": {
			evidence{History: []gcefake.Happening{came("u", "a"), came("u", "b"), went("u", "a")}}, verdict{Duplicates: 1},
		},
		"two of two":      {evidence{History: []gcefake.Happening{came("u", "a"), came("v", "a")}}, verdict{}},
		"an instance":     {evidence{Held: []string{"x"}}, verdict{Instances: 1}},
		"a disk":          {evidence{Disks: []string{"x"}}, verdict{Disks: 1}},
		"a firewall":      {evidence{Firewalls: []string{"x"}}, verdict{Firewalls: 1}},
		"what never came": {evidence{Unsettled: []string{"x"}}, verdict{Unsettled: 1}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := judge(c.e)
			require.Equal(t, c.want.clean(), len(got.Report) == 0)
			require.Equal(t, c.want.clean(), got.clean())
			got.Report = nil
			require.Equal(t, c.want, got)
		})
	}
}

func TestTheLastLine(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	require.True(t, conclude(&out, judge(evidence{Proxies: 200, Calls: 4430}), nil))
	require.Equal(t, "gcp: proxies=200 duplicates=0 leaked_instances=0 leaked_disks=0 leaked_firewalls=0 "+
		"calls_per_proxy=22.1\n", out.String())
	require.False(t, conclude(&out, judge(evidence{Proxies: 200}), []string{"a stockout"}))
	require.False(t, conclude(&out, judge(evidence{Held: []string{"x"}}), nil))
}
