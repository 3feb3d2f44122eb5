package gcefake_test

import (
	"testing"
	"time"

	"cloud.google.com/go/compute/apiv1/computepb"
	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/proto"

	"github.com/egressfleet/egressfleet/testsuite/gcefake"
)

// spread plants three instances in each of three zones.
func spread(l *lab) (names []string) {
	for _, zone := range []string{"europe-west1-b", zoneA, zoneB} {
		for _, n := range []string{"-1", "-2", "-3"} {
			l.Plant(gcefake.Place{Zone: zone, Name: "in-" + zone + n}, &computepb.Instance{
				Labels: map[string]string{"zone": zone},
			})
			names = append(names, "in-"+zone+n)
		}
	}
	return names
}

func TestPages(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		most, size, pages int
	}{
		"one page is enough":               {0, 0, 1},
		"pages end within a zone":          {2, 0, 5},
		"pages end with a zone":            {3, 0, 3},
		"the server gives less than asked": {4, 1, 9},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l := start(t, gcefake.Pace{})
			want := spread(l)
			if c.size > 0 {
				l.PageSize(c.size)
			}
			req := &computepb.AggregatedListInstancesRequest{}
			if c.most > 0 {
				req.MaxResults = proto.Uint32(uint32(c.most))
			}
			names, omitted, err := l.all(t, req)
			require.NoError(t, err)
			require.ElementsMatch(t, want, names)
			require.Empty(t, omitted)
			require.Equal(t, c.pages, l.Count("instances.aggregatedList"))
		})
	}
}

func TestWhatGoesBetweenTwoPages(t *testing.T) {
	t.Parallel()
	l := start(t, gcefake.Pace{})
	spread(l)
	req := &computepb.ListInstancesRequest{Project: project, Zone: zoneA, MaxResults: proto.Uint32(1)}
	it := l.instances.List(t.Context(), req)
	first, err := it.Next()
	require.NoError(t, err)
	l.Instance(at(first.GetName())).Vanish()
	second, err := it.Next()
	require.NoError(t, err)
	require.Equal(t, "in-"+zoneA+"-2", second.GetName(), "nothing is left out")
}

func TestFilteredLists(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		filter string
		want   int
	}{
		"a label":                  {"labels.zone = " + zoneA, 3},
		"a label that is not it":   {"labels.zone != " + zoneA, 6},
		"a label that is there":    {"labels.zone:*", 9},
		"a label that is not":      {"labels.team:*", 0},
		"two, side by side":        {"(labels.zone = " + zoneA + ") (name = in-" + zoneA + "-1)", 1},
		"two, of which one":        {"name = in-" + zoneA + "-1 OR name = in-" + zoneB + "-1", 2},
		"a state":                  {`status = "RUNNING"`, 9},
		"an expression":            {"name eq in-europe.*", 3},
		"an expression that isn't": {"name ne in-europe.*", 6},
		"a field within another":   {"scheduling.provisioningModel = STANDARD", 9},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l := start(t, gcefake.Pace{})
			spread(l)
			names, _, err := l.all(t, &computepb.AggregatedListInstancesRequest{Filter: &c.filter})
			require.NoError(t, err)
			require.Len(t, names, c.want)
		})
	}
}

func TestAZoneThatCannotBeReached(t *testing.T) {
	t.Parallel()
	l := start(t, gcefake.Pace{})
	spread(l)
	heal := l.Zone(zoneA).CutOff()
	names, omitted, err := l.some(t)
	require.NoError(t, err)
	require.Len(t, names, 6)
	require.Equal(t, []string{"zones/" + zoneA}, omitted)
	_, _, err = l.all(t, &computepb.AggregatedListInstancesRequest{})
	require.Equal(t, "backendError", refused(t, err), "the caller did not ask for a part")
	require.Equal(t, "backendError", l.state(t, "in-"+zoneA+"-1"))
	_, err = l.insert(t, wanted(vm))
	require.Equal(t, "backendError", refused(t, err))
	heal()
	names, omitted, err = l.some(t)
	require.NoError(t, err)
	require.Len(t, names, 9)
	require.Empty(t, omitted)
}

func TestASecondPageThatFails(t *testing.T) {
	t.Parallel()
	l := start(t, gcefake.Pace{})
	spread(l)
	l.PageSize(5)
	first := true
	l.Inject(gcefake.Fault{
		Method: "instances.aggregatedList", Answer: gcefake.Captured("delete-403-rateLimit"),
		When: func(gcefake.Call) bool { was := first; first = false; return !was },
	})
	_, _, err := l.all(t, &computepb.AggregatedListInstancesRequest{})
	require.Equal(t, "rateLimitExceeded", refused(t, err))
}

func TestWhatIsNewIsNotSeenAtOnce(t *testing.T) {
	t.Parallel()
	l := start(t, gcefake.Pace{GetLag: 5 * time.Second, ListLag: 20 * time.Second})
	l.made(t, vm)
	listed := func() int {
		names, _, err := l.all(t, &computepb.AggregatedListInstancesRequest{})
		require.NoError(t, err)
		return len(names)
	}
	require.Equal(t, "notFound", l.state(t, vm))
	require.Zero(t, listed())
	_, err := l.remove(t, vm)
	require.Equal(t, "notFound", refused(t, err))
	_, err = l.insert(t, wanted(vm))
	require.Equal(t, "alreadyExists", refused(t, err), "who makes it knows better")
	l.clock.Advance(5 * time.Second)
	require.Equal(t, gcefake.Running, l.state(t, vm))
	require.Zero(t, listed())
	l.clock.Advance(15 * time.Second)
	require.Equal(t, 1, listed())
	l.Instance(at(vm)).Hide(time.Minute)
	require.Equal(t, "notFound", l.state(t, vm))
	l.clock.Advance(time.Minute)
	require.Equal(t, gcefake.Running, l.state(t, vm))
}
