package discovery_test

import (
	"fmt"
	"math"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/egressfleet/egressfleet/api/discovery"
	v1 "github.com/egressfleet/egressfleet/api/v1"
)

func endpoints(n int) (all []v1.Endpoint) {
	for i := range n {
		all = append(all, v1.Endpoint{Namespace: "default", Name: "p" + strconv.Itoa(i), Healthy: true})
	}
	return all
}

// keysOf counts how many of so many keys every proxy gets.
func keysOf(all []v1.Endpoint, keys int) (of map[string]string, counts map[string]int) {
	of, counts = map[string]string{}, map[string]int{}
	for i := range keys {
		key := fmt.Sprintf("account-%d", i)
		of[key] = discovery.Pick(all, key).Name
		counts[of[key]]++
	}
	return of, counts
}

func TestAKeyStaysWithItsProxy(t *testing.T) {
	t.Parallel()
	const keys = 10_000
	all := endpoints(10)
	before, counts := keysOf(all, keys)
	for name, n := range counts {
		require.InDelta(t, keys/10, n, 150, name)
	}
	after, _ := keysOf(all[:9], keys)
	for key, name := range before {
		if name != "p9" {
			require.Equal(t, name, after[key], "only the keys of the one that went have moved")
		}
	}
	reversed := []v1.Endpoint{all[2], all[1], all[0]}
	for i := range 100 {
		key := strconv.Itoa(i)
		require.Equal(t, discovery.Pick(all[:3], key).Name, discovery.Pick(reversed, key).Name, "the order is nothing")
	}
}

func TestAProxyIsPickedByItsHealth(t *testing.T) {
	t.Parallel()
	const keys = 10_000
	all := endpoints(2)
	all[1].Unprobed = true
	_, counts := keysOf(all, keys)
	require.InDelta(t, 4, float64(counts["p0"])/float64(counts["p1"]), 0.5, "one that was probed, four times as often")
	all[1] = v1.Endpoint{Namespace: "default", Name: "p1"}
	_, counts = keysOf(all, keys)
	require.InDelta(t, keys/101, counts["p1"], 60, "an unhealthy one is a last resort")
	drawn := map[string]int{}
	for range keys {
		drawn[discovery.Pick(endpoints(2), "").Name]++
	}
	// Five standard deviations: once in two million runs.
	require.InDelta(t, keys/2, drawn["p0"], 5*math.Sqrt(keys)/2, "without a key it is drawn")
}

func TestOneThatIsAboutToLeaveIsNeverPicked(t *testing.T) {
	t.Parallel()
	all := endpoints(2)
	all[0].LeaveAt = time.Now()
	for i := range 100 {
		require.Equal(t, "p1", discovery.Pick(all, strconv.Itoa(i)).Name)
		require.Equal(t, "p1", discovery.Pick(all, "").Name)
	}
	require.Nil(t, discovery.Pick(all[:1], "key"))
	require.Nil(t, discovery.Pick(nil, ""))
}

func TestAFilterKeepsWhatFits(t *testing.T) {
	t.Parallel()
	e := v1.Endpoint{
		Namespace: "n", Provider: "p", Region: "r", Zone: "z", Healthy: true, Labels: map[string]string{"team": "a"},
	}
	sick := e
	sick.Healthy = false
	selector := func(text string) labels.Selector {
		s, err := labels.Parse(text)
		require.NoError(t, err)
		return s
	}
	for name, c := range map[string]struct {
		filter    discovery.Filter
		well, ill bool
	}{
		"nothing asked":     {discovery.Filter{}, true, false},
		"healthy":           {discovery.Filter{Health: discovery.HealthyOnly}, true, false},
		"unhealthy":         {discovery.Filter{Health: discovery.UnhealthyOnly}, false, true},
		"any":               {discovery.Filter{Health: discovery.HealthAny}, true, true},
		"all that fits":     {discovery.Filter{"n", "p", "r", "z", selector("team in (a, b)"), "any"}, true, true},
		"another namespace": {discovery.Filter{Namespace: "x"}, false, false},
		"another provider":  {discovery.Filter{Provider: "x"}, false, false},
		"another region":    {discovery.Filter{Region: "x"}, false, false},
		"another zone":      {discovery.Filter{Zone: "x"}, false, false},
		"another label":     {discovery.Filter{Labels: selector("team!=a"), Health: discovery.HealthAny}, false, false},
	} {
		require.Equal(t, c.well, c.filter.Keeps(e), name)
		require.Equal(t, c.ill, c.filter.Keeps(sick), name)
	}
}
