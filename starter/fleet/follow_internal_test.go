package fleet

import (
	"cmp"
	"context"
	"errors"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.temporal.io/api/common/v1"
	"go.temporal.io/api/enums/v1"
	"go.temporal.io/api/serviceerror"
	"go.temporal.io/api/workflow/v1"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/converter"
	"google.golang.org/protobuf/types/known/timestamppb"

	v1 "github.com/egressfleet/egressfleet/api/v1"
	"github.com/egressfleet/egressfleet/internal/codec"
	"github.com/egressfleet/egressfleet/workflows/proxy"
)

const (
	testLag = time.Minute
	perPage = 3
)

// record is a run of a proxy in the Visibility of a test.
type record struct {
	name, run      string
	began, changed time.Time
	closed         time.Time
	status         enums.WorkflowExecutionStatus
	ip             string
	phase          v1.Phase        // empty: it is running
	memo           *common.Payload // nil: it shows its address
	hidden         bool            // it is not shown yet, or no more
}

// visibility answers the queries of a follower from its records, in pages.
type visibility struct {
	client.Client

	t       *testing.T
	records []*record
	now     time.Time // of Temporal; the follower's clock is behind by an hour
	asked   []string
	fault   error
	// refuses is what a query must not have.
	refuses string
	// expired are the pages but the first.
	expired bool
	// meanwhile happens once, after a query.
	meanwhile func()
}

var clause = regexp.MustCompile(`(ProxyChanged|StartTime|CloseTime) (>|<=) '([^']+)'`)

// finds reports whether a query finds a record.
func (v *visibility) finds(query string, r *record) bool {
	wantsRunning := strings.Contains(query, "ExecutionStatus = 'Running'")
	require.True(v.t, wantsRunning || strings.Contains(query, "ExecutionStatus != 'Running'"), query)
	if r.hidden || wantsRunning != (r.status == stillRuns) {
		return false
	}
	c := clause.FindStringSubmatch(query)
	if c == nil {
		return true
	}
	at, err := time.Parse(time.RFC3339Nano, c[3])
	require.NoError(v.t, err)
	is := map[string]time.Time{"ProxyChanged": r.changed, "StartTime": r.began, "CloseTime": r.closed}[c[1]]
	return !is.IsZero() && is.After(at) == (c[2] == ">")
}

func (v *visibility) found(query string) (found []*record, err error) {
	v.asked = append(v.asked, query)
	if v.fault != nil {
		return nil, v.fault
	}
	if v.refuses != "" && strings.Contains(query, v.refuses) {
		return nil, serviceerror.NewInvalidArgument(v.refuses + " is not known")
	}
	for _, r := range v.records {
		if v.finds(query, r) {
			found = append(found, r)
		}
	}
	if then := v.meanwhile; then != nil {
		v.meanwhile = nil
		then()
	}
	return found, nil
}

func (v *visibility) CountWorkflow(
	_ context.Context, r *workflowservice.CountWorkflowExecutionsRequest,
) (*workflowservice.CountWorkflowExecutionsResponse, error) {
	found, err := v.found(r.GetQuery())
	return &workflowservice.CountWorkflowExecutionsResponse{Count: int64(len(found))}, err
}

func (v *visibility) ListWorkflow(
	_ context.Context, r *workflowservice.ListWorkflowExecutionsRequest,
) (*workflowservice.ListWorkflowExecutionsResponse, error) {
	found, err := v.found(r.GetQuery())
	if err != nil {
		return nil, err
	}
	from := len(r.GetNextPageToken())
	if from > 0 && v.expired {
		return nil, errors.New("the token has expired")
	}
	page := &workflowservice.ListWorkflowExecutionsResponse{}
	for _, r := range found[min(from, len(found)):min(from+perPage, len(found))] {
		page.Executions = append(page.Executions, v.info(r))
	}
	if from+perPage < len(found) {
		page.NextPageToken = make([]byte, from+perPage)
	}
	return page, nil
}

func (v *visibility) info(r *record) *workflow.WorkflowExecutionInfo {
	payload := func(value any) *common.Payload {
		p, err := converter.GetDefaultDataConverter().ToPayload(value)
		require.NoError(v.t, err)
		return p
	}
	memo := r.memo
	if memo == nil {
		memo = payload(v1.Proxy{
			Metadata: v1.Metadata{Namespace: "default", Name: r.name, UID: "uid-" + r.name},
			Status:   v1.ProxyStatus{IP: r.ip, Phase: cmp.Or(r.phase, v1.PhaseRunning)},
		})
	}
	info := &workflow.WorkflowExecutionInfo{
		Execution: &common.WorkflowExecution{WorkflowId: proxy.WorkflowID("default", r.name), RunId: r.run},
		StartTime: timestamppb.New(r.began), Status: r.status,
		Memo:             &common.Memo{Fields: map[string]*common.Payload{proxy.MemoProxy: memo}},
		SearchAttributes: &common.SearchAttributes{IndexedFields: map[string]*common.Payload{}},
	}
	if !r.changed.IsZero() {
		info.SearchAttributes.IndexedFields["ProxyChanged"] = payload(r.changed)
	}
	if !r.closed.IsZero() {
		info.CloseTime = timestamppb.New(r.closed)
	}
	return info
}

// begin adds a proxy that runs, and says when it changes.
func (v *visibility) begin(name, run string) *record {
	r := &record{name: name, run: run, began: v.now, changed: v.now, status: stillRuns, ip: "10.0.0.1"}
	v.records = append(v.records, r)
	return r
}

func (v *visibility) change(r *record, ip string) { r.ip, r.changed = ip, v.now }

func (v *visibility) end(r *record, status enums.WorkflowExecutionStatus) {
	r.status, r.closed = status, v.now
}

func (v *visibility) pass(d time.Duration) { v.now = v.now.Add(d) }

// followed is a client of it, whose clock is an hour behind.
func followed(t *testing.T, names ...string) (*visibility, *Client) {
	t.Helper()
	v := &visibility{t: t, now: noon}
	for _, name := range names {
		v.begin(name, "run-"+name)
	}
	c := New(v, "test", WithLag(testLag))
	c.following.now = func() time.Time { return v.now.Add(-time.Hour) }
	if len(names) > 0 {
		v.shows(c, all("10.0.0.1", names...)...)
		v.pass(time.Hour)
		v.shows(c, all("10.0.0.1", names...)...)
		v.asked = nil
	}
	return v, c
}

func all(ip string, names ...string) (shown []string) {
	for _, name := range names {
		shown = append(shown, name+" "+ip)
	}
	return shown
}

// shows follows once, and expects those proxies.
func (v *visibility) shows(c *Client, want ...string) {
	v.t.Helper()
	living, err := c.Follow(v.t.Context())
	require.NoError(v.t, err)
	shown := []string{}
	for _, p := range living.Proxies {
		shown = append(shown, p.Metadata.Name+" "+p.Status.IP)
	}
	require.Equal(v.t, append([]string{}, want...), shown)
}

// listings counts the queries for everything, page by page.
func (v *visibility) listings() (n int) {
	for _, query := range v.asked {
		if query == running("") {
			n++
		}
	}
	return n
}

func TestOnlyWhatChangedIsAskedFor(t *testing.T) {
	t.Parallel()
	v, c := followed(t, "a", "b", "c", "d")
	was := c.following.living
	v.pass(time.Second)
	v.shows(c, all("10.0.0.1", "a", "b", "c", "d")...)
	require.Zero(t, v.listings())
	require.Len(t, v.asked, 3, "what ended, what began and what changed")
	require.Equal(t, was.Revision, c.following.living.Revision)
	require.Same(t, &was.Proxies[0], &c.following.living.Proxies[0], "it is not made again")

	v.change(v.records[1], "10.0.0.2")
	v.end(v.records[2], terminated)
	v.begin("e", "run-e")
	v.pass(time.Second)
	v.shows(c, "a 10.0.0.1", "b 10.0.0.2", "d 10.0.0.1", "e 10.0.0.1")
	require.Zero(t, v.listings())
	require.NotEqual(t, was.Revision, c.following.living.Revision)
	require.Len(t, was.Proxies, 4, "a list that was returned stays as it is")
	require.Equal(t, "10.0.0.1", was.Proxies[1].Status.IP)
}

func TestWhatIsShownLateIsNotMissed(t *testing.T) {
	t.Parallel()
	v, c := followed(t, "a", "b", "c")
	late := v.begin("d", "run-d")
	late.hidden = true
	v.change(v.records[0], "10.0.0.2")
	stale := *v.records[0]
	v.records[0].ip, v.records[0].changed = "10.0.0.1", noon
	v.pass(2 * time.Second)
	v.shows(c, all("10.0.0.1", "a", "b", "c")...)
	v.pass(testLag - 3*time.Second)
	late.hidden, *v.records[0] = false, stale
	v.shows(c, "a 10.0.0.2", "b 10.0.0.1", "c 10.0.0.1", "d 10.0.0.1")
}

func TestALateRowBringsNothingBack(t *testing.T) {
	t.Parallel()
	v, c := followed(t, "a", "b")
	v.change(v.records[0], "10.0.0.2")
	before := *v.records[0]
	v.pass(time.Second)
	v.end(v.records[0], enums.WORKFLOW_EXECUTION_STATUS_COMPLETED)
	v.shows(c, "b 10.0.0.1")
	after := *v.records[0]
	*v.records[0] = before // another server of the store is behind
	v.pass(time.Second)
	v.shows(c, "b 10.0.0.1")
	c.following.listed, v.records[0].hidden = false, true
	v.pass(time.Second)
	v.shows(c, "b 10.0.0.1")
	v.records[0].hidden = false
	v.pass(time.Second)
	v.shows(c, "b 10.0.0.1")
	*v.records[0] = after
	again := v.begin("a", "another")
	again.ip = "10.0.0.3"
	v.pass(time.Second)
	v.shows(c, "a 10.0.0.3", "b 10.0.0.1")
	v.pass(time.Second)
	v.shows(c, "a 10.0.0.3", "b 10.0.0.1")
}

func TestALateRowInAListingHidesNothing(t *testing.T) {
	t.Parallel()
	v, c := followed(t, "a", "b")
	before := *v.records[0]
	v.change(v.records[0], "10.0.0.2")
	v.shows(c, "a 10.0.0.2", "b 10.0.0.1")
	*v.records[0] = before
	c.following.listed = false
	v.pass(time.Second)
	v.shows(c, "a 10.0.0.2", "b 10.0.0.1")
}

func TestWhatEndedIsForgottenAfterAWhile(t *testing.T) {
	t.Parallel()
	v, c := followed(t, "a", "b")
	v.end(v.records[0], terminated)
	v.shows(c, "b 10.0.0.1")
	require.Len(t, c.following.known.lives, 2)
	for range 3 {
		v.pass(testLag)
		v.shows(c, "b 10.0.0.1")
	}
	require.Len(t, c.following.known.lives, 1)
}

func TestAProxyThatGoesOnInAnotherRunStaysShown(t *testing.T) {
	t.Parallel()
	v, c := followed(t, "a", "b")
	v.end(v.records[0], continued)
	v.pass(time.Second)
	v.shows(c, "a 10.0.0.1", "b 10.0.0.1") // the run that follows is not shown yet
	next := v.begin("a", "next")
	v.pass(time.Second)
	v.shows(c, "a 10.0.0.1", "b 10.0.0.1")
	v.change(next, "10.0.0.2")
	v.pass(time.Second)
	v.shows(c, "a 10.0.0.2", "b 10.0.0.1")
	v.end(next, terminated)
	v.pass(time.Second)
	v.shows(c, "b 10.0.0.1")
}

func TestAProxyThatIsMadeAgainDuringAnUpdateStaysShown(t *testing.T) {
	t.Parallel()
	v, c := followed(t, "a", "b")
	v.meanwhile = func() {
		v.end(v.records[0], terminated)
		again := v.begin("a", "another") // which has not published yet
		again.ip, again.changed = "10.0.0.2", time.Time{}
	}
	for range 2 {
		v.pass(time.Second)
		v.shows(c, "a 10.0.0.2", "b 10.0.0.1")
	}
}

// What happens while everything is listed may be on no page, or on one too many.
func TestAProxyThatGoesOnDuringAListingStaysShown(t *testing.T) {
	t.Parallel()
	v, c := followed(t, "a", "b", "c", "d")
	c.following.listed = false
	v.meanwhile = func() {
		v.end(v.records[3], continued)
		v.records = append([]*record{{}}, v.records...)
		*v.records[0] = *v.records[4]
		v.records[0].run, v.records[0].status, v.records[0].ip = "next", stillRuns, "10.0.0.2"
		v.records[0].began, v.records[0].changed, v.records[0].closed = v.now, v.now, time.Time{}
	}
	v.shows(c, append(all("10.0.0.1", "a", "b", "c"), "d 10.0.0.2")...)
}

func TestAProxyWhoseNextRunNeverComesIsNotShownForGood(t *testing.T) {
	t.Parallel()
	v, c := followed(t, "a", "b")
	v.end(v.records[0], continued)
	v.shows(c, "a 10.0.0.1", "b 10.0.0.1")
	for range 3 {
		v.pass(testLag)
		_, err := c.Follow(t.Context())
		require.NoError(t, err)
	}
	v.shows(c, "b 10.0.0.1")
}

func TestACountThatDoesNotFitTwiceListsEverything(t *testing.T) {
	t.Parallel()
	names := []string{"a", "b", "c", "d", "e", "f", "g", "h", "i", "j", "k", "l"} // more pages than are listed here
	v, c := followed(t, names...)
	c.following.next = nil
	v.records[0].hidden = true // deleted from Temporal itself: nothing tells of its end
	for range 2 {
		v.pass(checkEvery)
		v.shows(c, all("10.0.0.1", names...)...)
	}
	v.asked = nil
	v.pass(time.Second)
	v.shows(c, all("10.0.0.1", names[1:]...)...)
	require.Equal(t, 4, v.listings())
	v.pass(time.Second)
	v.shows(c, all("10.0.0.1", names[1:]...)...)
	require.Equal(t, 4, v.listings(), "it fits again")
}

func TestACountThatFitsAgainListsNothing(t *testing.T) {
	t.Parallel()
	names := []string{"a", "b", "c", "d", "e", "f", "g", "h", "i", "j", "k", "l", "m", "n", "o"}
	v, c := followed(t, names...)
	c.following.next = nil
	for _, hidden := range []bool{true, false, true, false} {
		v.records[14].hidden = hidden
		v.pass(checkEvery)
		v.shows(c, all("10.0.0.1", names...)...)
	}
	require.Equal(t, 4, v.listings(), "a page each time")
}

// What never told that it changed, or was told too late, is found page by page.
func TestWhatWasMissedIsFoundPageByPage(t *testing.T) {
	t.Parallel()
	names := []string{"a", "b", "c", "d", "e", "f", "g"}
	v, c := followed(t, names...)
	c.following.next = nil
	v.records[6].ip = "10.0.0.9"
	v.records[0].status, v.records[0].closed = terminated, noon.Add(time.Minute)
	v.begin("h", "run-h").changed = noon.Add(time.Minute)
	v.records[7].began = noon.Add(time.Minute)
	for range 3 { // the count fits
		v.pass(checkEvery)
		_, err := c.Follow(t.Context())
		require.NoError(t, err)
	}
	want := append(all("10.0.0.1", names[1:6]...), "g 10.0.0.9", "h 10.0.0.1")
	for range 3 {
		v.pass(checkEvery)
		_, err := c.Follow(t.Context())
		require.NoError(t, err)
	}
	v.shows(c, want...)
	require.Equal(t, 6, v.listings(), "a page every time")
	v.pass(checkEvery / 2)
	v.shows(c, want...)
	require.Equal(t, 6, v.listings(), "and not more often")
}

func TestAnOlderWorkerHasEverythingListed(t *testing.T) {
	t.Parallel()
	v, c := followed(t, "a", "b", "c")
	old := v.begin("d", "run-d")
	old.changed = time.Time{}
	v.pass(time.Second)
	v.shows(c, all("10.0.0.1", "a", "b", "c", "d")...)
	old.ip = "10.0.0.2" // it publishes, and does not say so
	v.pass(time.Second)
	v.shows(c, append(all("10.0.0.1", "a", "b", "c"), "d 10.0.0.2")...)
	require.Zero(t, v.listings(), "it began just now, and is listed as that")
	v.pass(testLag)
	v.shows(c, append(all("10.0.0.1", "a", "b", "c"), "d 10.0.0.2")...)
	for _, ip := range []string{"10.0.0.3", "10.0.0.4"} {
		v.asked, old.ip = nil, ip
		v.pass(time.Second)
		v.shows(c, append(all("10.0.0.1", "a", "b", "c"), "d "+ip)...)
		require.Equal(t, 2, v.listings(), "two pages")
		require.Len(t, v.asked, 2, "and nothing else: the attribute may not be there")
	}
	v.end(old, continued) // a newer worker takes it over
	v.begin("d", "next").ip = "10.0.0.4"
	v.pass(time.Second)
	v.shows(c, append(all("10.0.0.1", "a", "b", "c"), "d 10.0.0.4")...)
	v.asked = nil
	v.pass(time.Second)
	v.shows(c, append(all("10.0.0.1", "a", "b", "c"), "d 10.0.0.4")...)
	require.Zero(t, v.listings())
}

func TestATimeOfTheRunBeforeIsNotFollowed(t *testing.T) {
	t.Parallel()
	v, c := followed(t, "a", "b")
	v.end(v.records[0], continued)
	next := v.begin("a", "next") // begun by an older worker
	next.changed = noon
	v.pass(2 * testLag)
	for _, ip := range []string{"10.0.0.2", "10.0.0.3", "10.0.0.4"} {
		next.ip = ip
		v.pass(time.Second)
		v.shows(c, "a "+ip, "b 10.0.0.1")
	}
}

func TestANamespaceWithoutTheAttributeIsListed(t *testing.T) {
	t.Parallel()
	v, c := followed(t)
	for _, name := range []string{"a", "b"} {
		v.begin(name, "run-"+name).changed = time.Time{}
	}
	v.pass(time.Hour)
	v.refuses = "ProxyChanged"
	for range 3 {
		v.pass(time.Second)
		v.shows(c, all("10.0.0.1", "a", "b")...)
	}
}

func TestAnAttributeThatSomebodyTookAwayIsNoError(t *testing.T) {
	t.Parallel()
	v, c := followed(t, "a", "b")
	v.refuses = "ProxyChanged"
	for _, ip := range []string{"10.0.0.2", "10.0.0.3"} {
		v.records[0].ip = ip
		v.pass(time.Second)
		v.shows(c, "a "+ip, "b 10.0.0.1")
	}
}

func TestNothingIsLostByAnError(t *testing.T) {
	t.Parallel()
	v, c := followed(t, "a", "b", "c")
	v.fault = serviceerror.NewUnavailable("away")
	for range 2 {
		v.pass(testLag)
		_, err := c.Follow(t.Context())
		require.ErrorIs(t, err, ErrUnavailable)
	}
	v.change(v.records[0], "10.0.0.2")
	v.end(v.records[1], terminated)
	v.pass(3 * testLag)
	_, err := c.Follow(t.Context())
	require.ErrorIs(t, err, ErrUnavailable)
	v.fault = nil
	v.shows(c, "a 10.0.0.2", "c 10.0.0.1")
}

func TestAListingWhosePageIsGoneBeginsAnew(t *testing.T) {
	t.Parallel()
	names := []string{"a", "b", "c", "d", "e"}
	v, c := followed(t, names...)
	require.NotEmpty(t, c.following.next, "a listing has begun")
	v.expired = true
	v.pass(checkEvery)
	_, err := c.Follow(t.Context())
	require.ErrorContains(t, err, "expired")
	v.pass(checkEvery)
	v.shows(c, all("10.0.0.1", names...)...)
}

func TestAListingThatBreaksOffIsNone(t *testing.T) {
	t.Parallel()
	v, c := followed(t)
	v.begin("a", "run-a")
	v.fault = serviceerror.NewUnavailable("away")
	_, err := c.Follow(t.Context())
	require.ErrorIs(t, err, ErrUnavailable)
	v.fault = nil
	v.shows(c, "a 10.0.0.1")
}

func TestAMemoThatCannotBeReadHidesNoOther(t *testing.T) {
	t.Parallel()
	v, c := followed(t, "a", "b")
	v.change(v.records[0], "")
	v.records[0].memo = &common.Payload{Metadata: map[string][]byte{"encoding": []byte("json/plain")}, Data: []byte("{")}
	v.pass(time.Second)
	for range 3 {
		v.shows(c, "b 10.0.0.1")
		v.pass(time.Second)
	}
	require.Zero(t, c.following.misfits, "it is there, and counts")
	v.records[0].memo = nil
	v.change(v.records[0], "10.0.0.2")
	v.shows(c, "a 10.0.0.2", "b 10.0.0.1")
}

func TestOnlyAnotherMemoIsDecoded(t *testing.T) {
	t.Parallel()
	v, c := followed(t, "a", "b")
	was := shownBy(c)
	v.change(v.records[0], "10.0.0.1") // it says so, and is the same
	v.change(v.records[1], "10.0.0.2")
	v.pass(time.Second)
	v.shows(c, "a 10.0.0.1", "b 10.0.0.2")
	is := shownBy(c)
	require.Same(t, was["a"], is["a"])
	require.NotSame(t, was["b"], is["b"])
}

func shownBy(c *Client) map[string]*v1.Proxy {
	shown := map[string]*v1.Proxy{}
	for _, l := range c.following.known.lives {
		shown[l.shown.Metadata.Name] = l.shown
	}
	return shown
}

func TestWithoutAKeyThereIsNoList(t *testing.T) {
	t.Parallel()
	v, c := followed(t, "a", "b")
	c.memos = sealed{c.memos}
	v.change(v.records[0], "10.0.0.2")
	for range 2 {
		v.pass(time.Second)
		_, err := c.Follow(t.Context())
		require.True(t, codec.IsUnreadable(err), "%v", err)
	}
	c.memos = converter.GetDefaultDataConverter()
	v.pass(testLag)
	v.shows(c, "a 10.0.0.2", "b 10.0.0.1")
}

// sealed has no key for anything.
type sealed struct{ converter.DataConverter }

func (sealed) FromPayload(*common.Payload, any) error {
	return converter.NewWorkflowTaskFailureError(errors.New("no key"))
}
