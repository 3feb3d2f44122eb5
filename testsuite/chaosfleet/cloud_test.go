package main

import (
	"net"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/egressfleet/egressfleet/activities/probe"
	v1 "github.com/egressfleet/egressfleet/api/v1"
	"github.com/egressfleet/egressfleet/providers"
)

// serving is a cloud with one instance, and what a probe says about its address.
func serving(t *testing.T) (c *cloud, s *site, verdict func() string) {
	t.Helper()
	s, err := newSite(t.Context())
	require.NoError(t, err)
	t.Cleanup(s.close)
	e, err := newEgress(t.Context())
	require.NoError(t, err)
	t.Cleanup(e.close)
	c = newCloud(e)
	_, err = c.Create(t.Context(), providers.CreateRequest{Name: "a", UID: "u", Installation: installation})
	require.NoError(t, err)
	address := net.JoinHostPort(c.of("u")[0].IP, strconv.Itoa(e.Port))
	return c, s, func() string {
		return new(probe.Prober).Probe(t.Context(), s.target(), probe.Proxy{Address: address}).Reason
	}
}

func TestAnInstanceServesAndRefusesAndIsGone(t *testing.T) {
	t.Parallel()
	c, s, verdict := serving(t)
	require.Equal(t, v1.ReasonHealthy, verdict())
	ip := c.of("u")[0].IP
	c.egress.refuse(true, ip)
	require.Equal(t, v1.ReasonRefused, verdict())
	c.egress.refuse(false, ip)
	require.Equal(t, v1.ReasonHealthy, verdict())
	s.down()
	require.Equal(t, v1.ReasonInconclusive, verdict())
	require.NoError(t, s.up(t.Context()))
	require.Equal(t, v1.ReasonHealthy, verdict())
	c.lose("u")
	require.Equal(t, v1.ReasonUnreachable, verdict())
}

func TestADeletedInstanceServesNoMore(t *testing.T) {
	t.Parallel()
	c, _, verdict := serving(t)
	require.NoError(t, c.Delete(t.Context(), c.of("u")[0].ID))
	require.Equal(t, v1.ReasonUnreachable, verdict())
}

func TestTheCloudWritesDownWhatCameAndWent(t *testing.T) {
	t.Parallel()
	c, _, _ := serving(t)
	req := providers.CreateRequest{Name: "a", UID: "u", Installation: installation}
	_, err := c.Create(t.Context(), req)
	require.NoError(t, err)
	c.lose("u")
	id, err := c.Create(t.Context(), req)
	require.NoError(t, err)
	c.backend.Break(providers.ErrTransient)
	require.Error(t, c.Delete(t.Context(), id))
	_, err = c.ListByTag(t.Context())
	require.Error(t, err)
	require.EqualValues(t, 1, c.failed.Load())
	c.backend.Heal()
	require.NoError(t, c.Delete(t.Context(), id))
	require.NoError(t, c.Delete(t.Context(), id), "again")
	held, log := c.record()
	require.Empty(t, held)
	var got []string
	for i, h := range log {
		require.Equal(t, "u", h.UID)
		require.WithinDuration(t, time.Now(), h.At, time.Minute)
		require.False(t, i > 0 && h.What == came && h.IP == log[i-1].IP, "another instance has another address")
		got = append(got, h.What)
	}
	require.Equal(t, []string{came, lost, came, deleted}, got)
}
