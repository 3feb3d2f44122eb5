package gcp

import (
	"testing"
	"time"

	"cloud.google.com/go/compute/apiv1/computepb"
	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/proto"

	"github.com/egressfleet/egressfleet/providers"
)

var noon = time.Date(2026, 3, 14, 12, 0, 0, 0, time.UTC)

// op is an operation about the instance of a place, begun some time before noon.
func op(at place, kind string, before time.Duration, change ...func(*computepb.Operation)) *computepb.Operation {
	begun := noon.Add(-before).Format(time.RFC3339Nano)
	o := &computepb.Operation{
		Name: proto.String(kind + before.String()), OperationType: &kind, Status: computepb.Operation_DONE.Enum(),
		TargetLink: proto.String("https://www.googleapis.com/compute/v1/projects/p/" + at.path("instances")),
		InsertTime: &begun, EndTime: &begun,
	}
	for _, c := range change {
		c(o)
	}
	return o
}

func underWay(o *computepb.Operation) { o.Status, o.EndTime = computepb.Operation_RUNNING.Enum(), nil }

func failing(code string, status int32) func(*computepb.Operation) {
	return func(o *computepb.Operation) {
		o.HttpErrorStatusCode = &status
		o.Error = &computepb.Error{Errors: []*computepb.Errors{{Code: &code, Message: proto.String("m")}}}
	}
}

func by(id string) func(*computepb.Operation) {
	return func(o *computepb.Operation) { o.ClientOperationId = &id }
}

// What Get says of an instance that a read does not find.
func TestErrorOfMissing(t *testing.T) {
	t.Parallel()
	const old, young = time.Hour, 10 * time.Second
	at := place{"us-central1-a", "proxy-a"}
	stockout := failing("ZONE_RESOURCE_POOL_EXHAUSTED", 503)
	for what, c := range map[string]struct {
		ops     []*computepb.Operation
		settled bool
		class   providers.Class
		op      string
	}{
		"nothing is known": {nil, false, providers.ErrNotFound, "get"},
		"an insert is under way": {
			[]*computepb.Operation{op(at, "insert", old, underWay)}, false, providers.ErrTransient, "get",
		},
		"an insert ended just now, and reads lag": {
			[]*computepb.Operation{op(at, "insert", young)}, false, providers.ErrTransient, "get",
		},
		"an insert ended nearly two minutes ago": {
			[]*computepb.Operation{op(at, "insert", 2*time.Minute-time.Millisecond)}, false, providers.ErrTransient, "get",
		},
		"an insert ended two minutes ago": {
			[]*computepb.Operation{op(at, "insert", 2*time.Minute)}, false, providers.ErrNotFound, "get",
		},
		"an insert ended long ago": {[]*computepb.Operation{op(at, "insert", old)}, false, providers.ErrNotFound, "get"},
		"an insert has failed": {
			[]*computepb.Operation{op(at, "insert", old, stockout)}, false, providers.ErrQuotaExceeded, "create",
		},
		"it has, and Delete saw it": {
			[]*computepb.Operation{op(at, "insert", old, stockout)}, true, providers.ErrNotFound, "get",
		},
		"an old one has failed, the next is under way": {
			[]*computepb.Operation{op(at, "insert", young, underWay), op(at, "insert", old, stockout)},
			false,
			providers.ErrTransient, "get",
		},
		"a delete is under way": {
			[]*computepb.Operation{op(at, "insert", old), op(at, "delete", young, underWay)},
			false,
			providers.ErrTransient, "get",
		},
		"it was deleted": {
			[]*computepb.Operation{op(at, "delete", young), op(at, "insert", 2*young)}, false, providers.ErrNotFound, "get",
		},
		"it was deleted while it was created": {
			[]*computepb.Operation{
				op(at, "insert", 2*young, failing("RESOURCE_IN_USE_BY_ANOTHER_RESOURCE", 409)), op(at, "delete", young),
			}, false, providers.ErrNotFound, "get",
		},
		"a second delete found nothing": {
			[]*computepb.Operation{
				op(at, "insert", 3*young), op(at, "delete", 2*young), op(at, "delete", young, failing("RESOURCE_NOT_FOUND", 404)),
			}, false, providers.ErrNotFound, "get",
		},
		"a delete has failed, and reads lag": {
			[]*computepb.Operation{op(at, "insert", young), op(at, "delete", 0, failing("INTERNAL_ERROR", 500))},
			false,
			providers.ErrTransient, "get",
		},
		"it was deleted, and made again": {
			[]*computepb.Operation{op(at, "insert", old), op(at, "delete", 2*young), op(at, "insert", young, stockout)},
			false,
			providers.ErrQuotaExceeded, "create",
		},
		"operations of another instance": {
			[]*computepb.Operation{op(place{at.zone, "proxy-ab"}, "insert", young, underWay)},
			false,
			providers.ErrNotFound, "get",
		},
	} {
		gotOp, err := errorOfMissing(tell(at, c.ops), c.settled, noon)
		require.Equal(t, c.class, classify(err, about{op: gotOp}), "%s: %v", what, err)
		require.Equal(t, c.op, gotOp, what)
	}
}

func TestPreemptedIsOfThisLife(t *testing.T) {
	t.Parallel()
	at := place{"us-central1-a", "proxy-a"}
	taken := op(at, "compute.instances.preempted", time.Minute)
	require.True(t, tell(at, []*computepb.Operation{op(at, "insert", time.Hour), taken}).preempted)
	require.False(t, tell(at, []*computepb.Operation{op(at, "insert", time.Second), taken}).preempted)
	require.False(t, tell(at, []*computepb.Operation{op(at, "insert", time.Second)}).preempted)
}

var me = wanted{providers.Holder{UID: "u", Installation: "test"}, "mine"}

func machine(status, uid string) *computepb.Instance {
	return &computepb.Instance{Status: &status, Labels: map[string]string{
		providers.MarkManaged: "true", providers.MarkUID: uid, providers.MarkInstallation: "test",
	}}
}

func TestFind(t *testing.T) {
	t.Parallel()
	at := place{"us-central1-a", "proxy-a"}
	ops := func(all ...*computepb.Operation) history { return tell(at, all) }
	for what, c := range map[string]struct {
		in   sight
		want finding
	}{
		"nothing":                  {sight{}, free},
		"ours":                     {sight{instance: machine("RUNNING", "u")}, ours},
		"ours, and stopped":        {sight{instance: machine("TERMINATED", "u")}, ours},
		"ours, stopping by itself": {sight{instance: machine("STOPPING", "u")}, ours},
		"ours, being deleted": {
			sight{instance: machine("RUNNING", "u"), history: ops(op(at, "delete", 0, underWay))}, dying,
		},
		"ours, nearly gone": {sight{instance: machine("DEPROVISIONING", "u")}, dying},
		"somebody else's":   {sight{instance: machine("RUNNING", "v")}, foreign},
		"somebody else's, being deleted": {
			sight{instance: machine("RUNNING", "v"), history: ops(op(at, "delete", 0, underWay))}, foreign,
		},
		"no fleet's":                {sight{instance: &computepb.Instance{}}, foreign},
		"gone, and its delete runs": {sight{history: ops(op(at, "delete", 0, underWay))}, dying},
		"an insert of ours runs":    {sight{history: ops(op(at, "insert", 0, underWay, by("mine")))}, pending},
		"an insert of others runs":  {sight{history: ops(op(at, "insert", 0, underWay, by("x")))}, pending},
		"an insert ended just now":  {sight{history: ops(op(at, "insert", time.Second, by("mine")))}, pending},
		"an insert ended nearly two minutes ago": {
			sight{history: ops(op(at, "insert", 2*time.Minute-time.Millisecond, by("mine")))}, pending,
		},
		"an insert ended two minutes ago": {sight{history: ops(op(at, "insert", 2*time.Minute, by("mine")))}, spent},
		"this attempt has failed": {
			sight{history: ops(op(at, "insert", time.Hour, by("mine"), failing("QUOTA_EXCEEDED", 403)))}, failed,
		},
		"an attempt before has failed": {
			sight{history: ops(op(at, "insert", time.Hour, by("x"), failing("QUOTA_EXCEEDED", 403)))}, free,
		},
		"this attempt was deleted since": {
			sight{history: ops(op(at, "insert", time.Hour, by("mine")), op(at, "delete", 0))}, spent,
		},
		"this attempt's is gone": {sight{history: ops(op(at, "insert", time.Hour, by("mine")))}, spent},
		"that of an attempt before, gone": {
			sight{history: ops(op(at, "insert", time.Hour, by("x")), op(at, "delete", 0))}, free,
		},
	} {
		c.in.at = at
		require.Equal(t, c.want, c.in.find(me, noon), what)
	}
}

// No zone is inserted into before all others have been seen, and those before it have
// said no for good.
func TestChoose(t *testing.T) {
	t.Parallel()
	a, b, c := place{"us-central1-a", "n"}, place{"us-central1-b", "n"}, place{"us-central1-c", "n"}
	stockout := tell(a, []*computepb.Operation{op(a, "insert", 0, failing("ZONE_RESOURCE_POOL_EXHAUSTED", 503))})
	quota := tell(a, []*computepb.Operation{op(a, "insert", 0, failing("QUOTA_EXCEEDED", 403))})
	for what, row := range map[string]struct {
		finds   []finding
		of      history // of the first zone
		refused map[string]bool
		do      finding
		at      place
		more    int
	}{
		"nothing anywhere":                      {[]finding{free, free, free}, history{}, nil, free, a, 0},
		"ours in the last":                      {[]finding{free, free, ours}, history{}, nil, ours, c, 0},
		"ours in two":                           {[]finding{free, ours, ours}, history{}, nil, ours, b, 1},
		"somebody else's in the last":           {[]finding{ours, free, foreign}, history{}, nil, foreign, c, 0},
		"something comes in the last":           {[]finding{free, free, pending}, history{}, nil, pending, c, 0},
		"something goes in the last":            {[]finding{free, free, dying}, history{}, nil, dying, c, 0},
		"the first had no capacity":             {[]finding{failed, free, free}, stockout, nil, free, b, 0},
		"it had none, and the next one comes":   {[]finding{failed, pending, free}, stockout, nil, pending, b, 0},
		"the first failed for another reason":   {[]finding{failed, free, free}, quota, nil, failed, a, 0},
		"the first has made it, and it is gone": {[]finding{spent, free, free}, history{}, nil, spent, a, 0},
		"the first refused at once": {
			[]finding{free, free, free}, history{}, map[string]bool{a.zone: true}, free, b, 0,
		},
		"all refused at once": {
			[]finding{free, free, free},
			history{},
			map[string]bool{a.zone: true, b.zone: true, c.zone: true},
			failed,
			place{},
			0,
		},
		"one failed, the others refused": {
			[]finding{failed, free, free}, stockout, map[string]bool{b.zone: true, c.zone: true}, failed, a, 0,
		},
		"ours, and a failure before":                        {[]finding{failed, ours, free}, stockout, nil, ours, b, 0},
		"the last has made it, and a read does not find it": {[]finding{free, free, spent}, history{}, nil, spent, c, 0},
		"spent after a zone that had no capacity":           {[]finding{failed, spent, free}, stockout, nil, spent, b, 0},
		"one comes, and another one goes":                   {[]finding{pending, dying, free}, history{}, nil, dying, b, 0},
	} {
		seen := []sight{{at: a, history: row.of}, {at: b}, {at: c}}
		got := choose(seen, row.refused, func(s sight) finding {
			for n := range seen {
				if seen[n].at == s.at {
					return row.finds[n]
				}
			}
			return free
		})
		require.Equal(t, row.do, got.do, what)
		require.Equal(t, row.at, got.at.at, what)
		if row.do == ours {
			require.Len(t, got.more, row.more, what)
		}
	}
}
