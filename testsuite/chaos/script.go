package main

import (
	"fmt"
	"math/rand/v2"
	"time"

	v1 "github.com/egressfleet/egressfleet/api/v1"
)

// kind is what a client asks for.
type kind string

const (
	kindCreate  kind = "create"
	kindChange  kind = "change"
	kindReplace kind = "replace"
	kindHold    kind = "hold"
	kindResume  kind = "resume"
	kindDelete  kind = "delete"
)

// operation is one step of a client, after a pause. RequestID is the same for every
// repetition.
type operation struct {
	Kind      kind
	Spec      v1.ProxySpec // of create and change
	RequestID string
	After     time.Duration
	Renew     bool // the workflow is asked for a new run before it
}

const (
	// The first operation of each client comes within the first half of the storm.
	shortestPause, longestPause = 200 * time.Millisecond, 4 * time.Second
	firstPort, ports            = 3128, 100
)

// script plans n operations of one client: a create, and what makes sense after what
// came before. It is pure but for random.
func script(name string, n int, storm time.Duration, random *rand.Rand) []operation {
	out := make([]operation, 0, n)
	living, held := false, false
	for i := range n {
		op := operation{Kind: next(living, held, random), RequestID: fmt.Sprintf("%s-%d", name, i)}
		op.After = shortestPause + time.Duration(random.Int64N(int64(longestPause-shortestPause)))
		if i == 0 {
			op.After = time.Duration(random.Int64N(int64(storm / 2)))
		}
		op.Renew = i > 0 && random.IntN(5) == 0
		switch op.Kind {
		case kindCreate:
			living, held, op.Spec = true, false, anySpec(random)
		case kindChange:
			op.Spec = anySpec(random)
		case kindHold, kindResume:
			held = !held
		case kindDelete:
			living = false
		case kindReplace:
		}
		out = append(out, op)
	}
	return out
}

func next(living, held bool, random *rand.Rand) kind {
	n := random.IntN(100)
	switch {
	case !living:
		return kindCreate
	case n < 40:
		return kindChange
	case n < 60:
		return kindReplace
	case n < 80 && held:
		return kindResume
	case n < 80:
		return kindHold
	default:
		return kindDelete
	}
}

func anySpec(random *rand.Rand) v1.ProxySpec {
	return v1.ProxySpec{
		Provider:  providerName,
		Port:      firstPort + random.IntN(ports),
		Placement: v1.Placement{Zone: zones[random.IntN(len(zones))]},
		CloudInit: v1.CloudInit{Inline: fmt.Sprintf("#cloud-config\n# %d\n", random.IntN(ports))},
	}
}
