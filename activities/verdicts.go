package activities

import (
	"hash/fnv"
	"time"

	"github.com/egressfleet/egressfleet/activities/probe"
	v1 "github.com/egressfleet/egressfleet/api/v1"
)

// newsFor is what a proxy has to be told, and whether that is anything but what it
// shows already. What blames nobody changes nothing; it is only told to a proxy about
// which nothing is known. It is pure.
func newsFor(p v1.Proxy, r probe.Ruling, now time.Time) (HealthReport, bool) {
	shown, _ := p.Status.Condition(v1.ConditionHealthy)
	report := HealthReport{
		Healthy: r.Health == probe.HealthHealthy, Reason: r.Verdict.Reason,
		Message: r.Verdict.Text, EgressIP: r.Verdict.EgressIP,
	}
	if undecided(r) {
		report.Healthy, report.Undecided = false, true
		return report, p.Status.Healthy == nil && shown.Reason != report.Reason
	}
	if r.Health == probe.HealthHealthy {
		report.Reason = v1.ReasonHealthy // also where one try of the round was lost
	}
	moved := report.EgressIP != "" && report.EgressIP != p.Status.EgressIP &&
		(p.Status.EgressIP == "" || addressesTold(p.Metadata.UID, now))
	return report, r.Changed || shown.Reason != report.Reason || moved
}

// addressesTold reports whether this is the minute of the hour in which a proxy is told
// of another egress address: behind a pool of addresses there is one in every round.
func addressesTold(uid string, now time.Time) bool {
	h := fnv.New32a()
	_, _ = h.Write([]byte(uid))
	return int(h.Sum32()%60) == now.Minute()
}

// undecided reports whether the round says nothing about the proxy.
func undecided(r probe.Ruling) bool {
	return r.Verdict.Reason == v1.ReasonInconclusive || r.Verdict.Reason == v1.ReasonNoTarget
}

// overdueSince says since when a proxy is unhealthy, and whether that is longer than
// its spec lets it be. It has to fail now, too, and its target must be there: while that
// is down, nobody could tell whether another instance is better. It is pure.
func overdueSince(p v1.Proxy, r probe.Ruling, now time.Time) (since time.Time, overdue bool) {
	limit := p.Spec.HealthCheck.ReplaceAfter.Or(0)
	if limit <= 0 || undecided(r) || r.TargetDown || r.Health != probe.HealthUnhealthy || p.Status.Held {
		return time.Time{}, false
	}
	shown, judged := p.Status.Condition(v1.ConditionHealthy)
	if !judged || shown.Status != v1.ConditionFalse {
		return time.Time{}, false // it was healthy until this round
	}
	return shown.LastTransitionTime, now.Sub(shown.LastTransitionTime) >= limit
}
