package main

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/egressfleet/egressfleet/testsuite/gcefake"
)

// kind is one trouble: which calls it meets, how many of a hundred, and what it does.
type kind struct {
	name    string
	percent int
	fault   gcefake.Fault
	late    string // of a task: the captured failure that it ends with
}

// kinds are all that meets single calls. None is Permanent: such a proxy waits for a
// person, and nobody is there.
func kinds() []kind {
	answer := func(name string) gcefake.Answer { return gcefake.Captured(name) }
	return []kind{
		{name: "a quota that is found out late", percent: 4, late: "op-quota"},
		{name: "a stockout that is found out late", percent: 6, late: "op-stockout"},
		{name: "an insert that fails within the server", percent: 3, late: "op-internal"},
		{name: "a rate limit, 403", percent: 2, fault: gcefake.Fault{Answer: answer("get-403-rateLimit-per-minute")}},
		{name: "a rate limit, 429", percent: 2, fault: gcefake.Fault{Answer: answer("get-429")}},
		{name: "a delay", percent: 5, fault: gcefake.Fault{Delay: time.Second}},
		{name: "a connection that is cut off", percent: 2, fault: gcefake.Fault{Drop: true}},
		{name: "an answer of an insert that is lost", percent: 5, fault: gcefake.Fault{
			Method: "instances.insert", After: true, Drop: true,
		}},
		{name: "an answer of a delete that is lost", percent: 5, fault: gcefake.Fault{
			Method: "instances.delete", After: true, Answer: answer("get-502-html"),
		}},
		{name: "a false 404 of a get", percent: 3, fault: gcefake.Fault{
			Method: "instances.get", Answer: answer("get-404-instance"),
		}},
		{name: "a page that says 404", percent: 2, fault: gcefake.Fault{Answer: answer("get-404-html")}},
		{name: "a server error", percent: 2, fault: gcefake.Fault{Answer: answer("get-500")}},
	}
}

// trouble injects what is planned and counts what came of it.
type trouble struct {
	mu     sync.Mutex
	random *rand.Rand
	met    map[string]int
}

func newTrouble(seed uint64) *trouble {
	random := rand.New(rand.NewPCG(seed, 1)) //nolint:gosec // it has to be the same again
	return &trouble{met: map[string]int{}, random: random}
}

// strike meets that part of the calls; the count is of those.
func (t *trouble) strike(k kind) func(gcefake.Call) bool {
	return func(gcefake.Call) bool {
		t.mu.Lock()
		defer t.mu.Unlock()
		hit := t.random.IntN(100) < k.percent
		if hit {
			t.met[k.name]++
		}
		return hit
	}
}

func (t *trouble) begin(s *gcefake.Server) {
	for _, k := range kinds() {
		if k.late != "" {
			s.FailLate(gcefake.Late{When: t.strike(k), Failure: gcefake.Failed(k.late, "", "", "")})
			continue
		}
		k.fault.When = t.strike(k)
		s.Inject(k.fault)
	}
}

// missing are the kinds that met no call.
func (t *trouble) missing() (names []string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, k := range kinds() {
		if t.met[k.name] == 0 {
			names = append(names, k.name)
		}
	}
	return names
}

func (t *trouble) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	var lines []string
	for name, n := range t.met {
		lines = append(lines, fmt.Sprintf("%d × %s", n, name))
	}
	slices.Sort(lines)
	return strings.Join(lines, ", ")
}
