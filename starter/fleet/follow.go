package fleet

import (
	"context"
	"sync"
	"time"

	"go.temporal.io/api/serviceerror"
	"go.temporal.io/api/workflow/v1"
	"go.temporal.io/api/workflowservice/v1"

	v1 "github.com/egressfleet/egressfleet/api/v1"
	"github.com/egressfleet/egressfleet/internal/codec"
	"github.com/egressfleet/egressfleet/workflows/proxy"
)

const (
	// usualLag is how late Visibility may be and still nothing is missed. What happened
	// within it is listed again every time.
	usualLag = time.Minute
	// checkEvery is how often the proxies are counted and one page of all of them is listed,
	// beside what has changed: so what was missed all the same is found.
	checkEvery = 5 * time.Second
	// misfitsToList are the counts in a row that must not fit before everything is listed
	// at once: one may be of a moment ago.
	misfitsToList = 2
)

// WithLag follows a fleet whose Visibility may be so late; a minute without it.
func WithLag(d time.Duration) Option {
	return func(c *Client) { c.following.lag = d }
}

// Living are the living proxies of a fleet.
type Living struct {
	// Revision is another one where anything else is. It belongs to one Client.
	Revision int64
	Proxies  []v1.Proxy // in order of namespace and name; not to be changed
}

// Follow returns what List of all namespaces would. It keeps that, and asks Visibility
// only for what has changed, where every proxy says when it does; with an older worker
// it lists them all. It is one at a time, and its errors are those of List: nothing is
// lost by them.
func (c *Client) Follow(ctx context.Context) (Living, error) {
	f := c.following
	f.mu.Lock()
	defer f.mu.Unlock()
	if err := f.update(ctx); err != nil {
		return Living{}, err
	}
	if f.living.Revision != f.known.revision {
		f.living = Living{Revision: f.known.revision, Proxies: f.known.proxies()}
	}
	return f.living, nil
}

// follower keeps the proxies that a Client follows. All of it is behind mu.
type follower struct {
	mu     sync.Mutex
	client *Client
	lag    time.Duration
	now    func() time.Time

	known   knowledge
	offset  offset
	living  Living
	listed  bool      // everything was listed once
	since   time.Time // of Temporal's clock: what happened until then is known
	misfits int       // counts in a row
	// turn numbers the listings of everything; next is where the one that goes on page
	// after page is, and checked when it went on last, by our clock.
	turn    int
	next    []byte
	checked time.Time
}

func newFollower(c *Client) *follower {
	return &follower{client: c, lag: usualLag, now: time.Now, known: knowledge{lives: map[string]life{}, revision: 1}}
}

// update makes known what is. What has changed during a listing is asked for after it.
func (f *follower) update(ctx context.Context) error {
	if f.mustList() {
		if err := f.list(ctx); err != nil || f.mustList() {
			return err
		}
	}
	err := f.catchUp(ctx)
	if isAny[*serviceerror.InvalidArgument](err) { // somebody took the attribute away
		return f.list(ctx)
	}
	return err
}

// mustList reports whether asking for changes alone would miss some.
func (f *follower) mustList() bool {
	return !f.listed || !f.offset.known || f.misfits >= misfitsToList || f.known.undated(f.since)
}

// list lists everything.
func (f *follower) list(ctx context.Context) error {
	begun := f.now()
	f.turn++
	f.listed = false
	if err := f.read(ctx, running("")); err != nil {
		return err
	}
	f.endTurn()
	f.listed, f.misfits, f.checked = true, 0, begun
	f.reach(begun)
	return nil
}

// catchUp asks for what has changed. What has ended comes first: a proxy that goes on in
// another run meanwhile is then not taken for one that is gone.
func (f *follower) catchUp(ctx context.Context) error {
	begun, due := f.now(), f.due()
	before, count := f.known.settled(f.since), int64(0)
	if due { // before the rest: what ends meanwhile is then in what was known, and in the count
		answer, err := f.client.temporal.CountWorkflow(ctx, &workflowservice.CountWorkflowExecutionsRequest{
			Query: running("") + " AND " + proxy.BegunUntil(f.since),
		})
		if err != nil {
			return translate(err)
		}
		count = answer.GetCount()
	}
	for _, query := range []string{
		runs("!=", "") + " AND " + proxy.ClosedSince(f.since),
		running("") + " AND " + proxy.BegunSince(f.since),
		running("") + " AND " + proxy.ChangedSince(f.since),
	} {
		if err := f.read(ctx, query); err != nil {
			return err
		}
	}
	if due {
		f.compare(count, before)
		if err := f.turnPage(ctx, begun); err != nil {
			return err
		}
	}
	f.reach(begun)
	return nil
}

// due reports whether it is time to look for what was missed.
func (f *follower) due() bool {
	since := f.now().Sub(f.checked)
	return since < 0 || since >= checkEvery
}

// compare takes over a count of what is settled, and how many were known before it.
func (f *follower) compare(count, before int64) {
	if fits(count, before, f.known.settled(f.since)) {
		f.misfits = 0
		return
	}
	f.misfits++
}

// turnPage lists one page more of everything.
func (f *follower) turnPage(ctx context.Context, now time.Time) error {
	f.checked = now
	if len(f.next) == 0 {
		f.turn++
	}
	page, err := f.client.page(ctx, running(""), pageSize, f.next)
	if err != nil {
		f.next = nil // it may be the page that cannot be had
		return err
	}
	at := f.now()
	for _, info := range page.GetExecutions() {
		if err := f.take(info, at); err != nil {
			return err
		}
	}
	if f.next = page.GetNextPageToken(); len(f.next) == 0 {
		f.endTurn()
	}
	return nil
}

// endTurn forgets what runs, as far as is known, and was on no page.
func (f *follower) endTurn() {
	f.known.forget(func(l life) bool { return l.runs() && l.turn != f.turn })
}

// reach ends an update that began at a time of ours: all that had happened by then and
// was shown is known. What ended a while ago does not come back.
func (f *follower) reach(begun time.Time) {
	f.since = f.offset.at(begun).Add(-f.lag)
	f.known.forget(func(l life) bool { return !l.runs() && l.ended.Before(f.since.Add(-f.lag)) })
}

func (f *follower) read(ctx context.Context, query string) error {
	for info, err := range f.client.find(ctx, query) {
		if err == nil {
			err = f.take(info, f.now())
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// take makes known what a row that was read at a time of ours says. Only a memo that is
// another one is decoded.
func (f *follower) take(info *workflow.WorkflowExecutionInfo, at time.Time) error {
	id, r := info.GetExecution().GetWorkflowId(), rowOf(info)
	f.offset.saw(r.latest(), at)
	was, known := f.known.lives[id]
	next := life{row: r, turn: f.turn}
	switch judge(was, known, r) {
	case fateNone:
		if next = was; r.run == was.run {
			next.turn = f.turn
		}
	case fateFollowed:
		next.shown = was.shown
	case fateTaken:
		shown, err := f.show(was, r, info)
		if err != nil {
			return err
		}
		next.shown = shown
	case fateOver:
	}
	f.known.put(id, next)
	return nil
}

// show is the Proxy of a row. One that cannot be shown does not hide the others; without
// a key there would be none of them, or too few.
func (f *follower) show(was life, r row, info *workflow.WorkflowExecutionInfo) (*v1.Proxy, error) {
	if was.run == r.run && was.memo == r.memo && was.shown != nil {
		return was.shown, nil
	}
	p, err := f.client.shown(info)
	switch {
	case err == nil:
		return &p, nil
	case codec.IsUnreadable(err):
		return nil, err
	default:
		return nil, nil //nolint:nilnil // it is there, and not shown
	}
}
