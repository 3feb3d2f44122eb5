package v1_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	v1 "github.com/egressfleet/egressfleet/api/v1"
)

func TestAConditionMovesOnlyWhenStatusOrReasonChange(t *testing.T) {
	t.Parallel()
	first, later := at(1, 0, 0), at(2, 0, 0)
	was := v1.Condition{
		Type: v1.ConditionProvisioned, Status: v1.ConditionFalse, Reason: v1.ReasonProvisioning, Message: "no address yet",
	}
	for name, c := range map[string]struct {
		change func(*v1.Condition)
		want   time.Time
	}{
		"nothing changes":     {func(*v1.Condition) {}, first},
		"the message changes": {func(c *v1.Condition) { c.Message = "still none" }, first},
		"the status changes":  {func(c *v1.Condition) { c.Status = v1.ConditionTrue }, later},
		"the reason changes":  {func(c *v1.Condition) { c.Reason = v1.ReasonQuotaExceeded }, later},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var s v1.ProxyStatus
			s.SetCondition(first, was)
			now := was
			c.change(&now)
			s.SetCondition(later, now)
			require.Len(t, s.Conditions, 1)
			now.LastTransitionTime = c.want
			got, ok := s.Condition(v1.ConditionProvisioned)
			require.True(t, ok)
			require.Equal(t, now, got)
		})
	}
}

func TestConditionsKeepTheirOrder(t *testing.T) {
	t.Parallel()
	var s v1.ProxyStatus
	for _, kind := range []string{v1.ConditionProvisioned, v1.ConditionHealthy, v1.ConditionHeld, v1.ConditionHealthy} {
		s.SetCondition(at(1, 0, 0), v1.Condition{Type: kind, Status: v1.ConditionTrue, Reason: "Because"})
	}
	require.Equal(t, []string{v1.ConditionProvisioned, v1.ConditionHealthy, v1.ConditionHeld}, kinds(s))
	s.DropCondition(v1.ConditionHealthy)
	s.DropCondition(v1.ConditionDeleting)
	require.Equal(t, []string{v1.ConditionProvisioned, v1.ConditionHeld}, kinds(s))
	_, ok := s.Condition(v1.ConditionHealthy)
	require.False(t, ok)
}

func kinds(s v1.ProxyStatus) (out []string) {
	for _, c := range s.Conditions {
		out = append(out, c.Type)
	}
	return out
}
