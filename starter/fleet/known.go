package fleet

import (
	"hash/maphash"
	"slices"
	"time"

	"go.temporal.io/api/enums/v1"
	"go.temporal.io/api/workflow/v1"

	v1 "github.com/egressfleet/egressfleet/api/v1"
	"github.com/egressfleet/egressfleet/workflows/proxy"
)

// row is one run of a proxy as Visibility shows it, which may be as it was a moment ago.
type row struct {
	run     string
	began   time.Time
	changed time.Time // when it published last; zero: it does not say
	ended   time.Time // zero: it runs
	// continued: it ended, and another run follows.
	continued bool
	memo      uint64 // tells two memos apart
}

func (r row) runs() bool { return r.ended.IsZero() }

// latest is the last time of Temporal that a row shows.
func (r row) latest() time.Time {
	return slices.MaxFunc([]time.Time{r.began, r.changed, r.ended}, time.Time.Compare)
}

var memoSeed = maphash.MakeSeed()

func rowOf(info *workflow.WorkflowExecutionInfo) row {
	r := row{
		run: info.GetExecution().GetRunId(), began: info.GetStartTime().AsTime(),
		memo: maphash.Bytes(memoSeed, info.GetMemo().GetFields()[proxy.MemoProxy].GetData()),
	}
	r.changed, _ = proxy.Followed(r.began, info.GetSearchAttributes())
	if info.GetStatus() != enums.WORKFLOW_EXECUTION_STATUS_RUNNING {
		r.ended = info.GetCloseTime().AsTime()
		r.continued = info.GetStatus() == enums.WORKFLOW_EXECUTION_STATUS_CONTINUED_AS_NEW
	}
	return r
}

// life is the newest run that is known of a proxy. One that ended is kept for a while: a
// row that comes late must not bring it back.
type life struct {
	row

	shown *v1.Proxy // nil: it ended, or cannot be shown
	turn  int       // of the listing that had it last
}

// fate is what a row means for what is known of its proxy.
type fate int

const (
	fateNone     fate = iota // it is no news
	fateTaken                // it is how the proxy is now
	fateFollowed             // its run ended, and the proxy goes on in another one
	fateOver                 // the proxy is gone
)

// judge says what a row means beside what is known. Rows come in any order, more than
// once and late: a run that has ended never runs again, one that began before another is
// the older one, and what was published earlier is no news.
func judge(was life, known bool, r row) fate {
	switch {
	case known && r.stale(was.row):
		return fateNone
	case r.runs():
		return fateTaken
	case r.continued && was.shown != nil:
		return fateFollowed
	default:
		return fateOver
	}
}

// stale reports whether a row is older than what is known. Two runs may have begun at the
// same time, where one was reset: the one that runs counts, and what is published later.
func (r row) stale(was row) bool {
	switch earlier := r.changed.Before(was.changed); {
	case r.run == was.run:
		return !was.runs() || r.runs() && earlier
	case r.began.Equal(was.began):
		return !r.runs() || was.runs() && earlier
	default:
		return r.began.Before(was.began)
	}
}

// knowledge is the proxies of a fleet by the IDs of their workflows.
type knowledge struct {
	lives    map[string]life
	revision int64 // of what is shown
}

// settled counts the runs that began until a time.
func (k *knowledge) settled(until time.Time) (n int64) {
	for _, l := range k.lives {
		if l.runs() && !l.began.After(until) {
			n++
		}
	}
	return n
}

// undated reports whether a run that began until a time does not say when it publishes:
// a worker of before has it, or none yet.
func (k *knowledge) undated(until time.Time) bool {
	for _, l := range k.lives {
		if l.runs() && l.changed.IsZero() && !l.began.After(until) {
			return true
		}
	}
	return false
}

// put remembers a life, and counts where another Proxy is shown.
func (k *knowledge) put(id string, l life) {
	if k.lives[id].shown != l.shown {
		k.revision++
	}
	k.lives[id] = l
}

// forget drops the lives that are no longer wanted.
func (k *knowledge) forget(is func(life) bool) {
	for id, l := range k.lives {
		if !is(l) {
			continue
		}
		if l.shown != nil {
			k.revision++
		}
		delete(k.lives, id)
	}
}

// proxies are those that are shown, in their order.
func (k *knowledge) proxies() []v1.Proxy {
	shown := make([]*v1.Proxy, 0, len(k.lives))
	for _, l := range k.lives {
		if l.shown != nil {
			shown = append(shown, l.shown)
		}
	}
	slices.SortFunc(shown, func(a, b *v1.Proxy) int { return inOrder(*a, *b) })
	all := make([]v1.Proxy, len(shown))
	for i, p := range shown {
		all[i] = *p
	}
	return all
}

// fits reports whether a count of the runs that are settled agrees with what was known of
// them before it and is known after it: none was missed. Meanwhile some may have ended.
func fits(count, before, after int64) bool { return after <= count && count <= before }

// offsetKept is how long a time of Temporal counts at the least, and at most twice that:
// its clock may be set back.
const offsetKept = 10 * time.Minute

// offset is the clock of Temporal as far as it is known here: it is ahead of ours by at
// least so much. Two machines need not agree on the time.
type offset struct {
	known   bool
	atLeast time.Duration
	recent  time.Duration // the same of what was seen from renewed on
	renewed time.Time     // of our clock
}

// saw takes over a time of Temporal that was read at a time of ours.
func (o *offset) saw(theirs, at time.Time) {
	ahead := theirs.Sub(at)
	switch {
	case !o.known:
		*o = offset{known: true, atLeast: ahead, recent: ahead, renewed: at}
	case at.Sub(o.renewed) >= offsetKept:
		*o = offset{known: true, atLeast: max(o.recent, ahead), recent: ahead, renewed: at}
	default:
		o.atLeast, o.recent = max(o.atLeast, ahead), max(o.recent, ahead)
	}
}

// at is what the clock of Temporal showed at the least.
func (o *offset) at(ours time.Time) time.Time { return ours.Add(o.atLeast) }
