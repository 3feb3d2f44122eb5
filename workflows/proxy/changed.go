package proxy

import (
	"fmt"
	"slices"
	"time"

	"go.temporal.io/api/common/v1"
	"go.temporal.io/sdk/converter"
)

// changedAt is when the run published, and never before the run began or published
// last: another host of Temporal may have a clock that is behind.
func changedAt(now, began, last time.Time) time.Time {
	return slices.MaxFunc([]time.Time{now, began, last}, time.Time.Compare)
}

// Followed reports whether a run dates what it publishes, by its start and its search
// attributes, and when that was last. A run that does not may have kept the time of the
// run before it.
func Followed(began time.Time, fields *common.SearchAttributes) (changed time.Time, followed bool) {
	payload, ok := fields.GetIndexedFields()[attrChanged.GetName()]
	if !ok || converter.GetDefaultDataConverter().FromPayload(payload, &changed) != nil || changed.Before(began) {
		return time.Time{}, false
	}
	return changed, true
}

// The conditions of a query of Visibility for what may differ from what was listed at a
// time. Each is one of its own, since a store has an index for each.

// ChangedSince is for runs that published after a time.
func ChangedSince(t time.Time) string { return later(attrChanged.GetName(), t) }

// BegunSince is for runs that began after a time, and may not have published yet.
func BegunSince(t time.Time) string { return later("StartTime", t) }

// BegunUntil is for the others.
func BegunUntil(t time.Time) string { return fmt.Sprintf("StartTime <= '%s'", asQueried(t)) }

// ClosedSince is for runs that ended after a time.
func ClosedSince(t time.Time) string { return later("CloseTime", t) }

func later(name string, t time.Time) string { return fmt.Sprintf("%s > '%s'", name, asQueried(t)) }

func asQueried(t time.Time) string { return t.UTC().Format(time.RFC3339Nano) }
