package fake

import (
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"sync"
	"time"

	"github.com/egressfleet/egressfleet/providers"
)

// backend is what the provider talks to. It outlives the providers, and knows no
// contract: it answers with *BackendError. Its methods are called with the lock held.
type backend struct {
	mu        sync.Mutex
	instances map[string]*instance // by ID
	volumes   map[string]*volume   // by <location>/<name>
	requests  []providers.CreateRequest
	address   netip.Addr // the last one handed out
	failNext  *failNext  // what the next create fails with, late
	clock     time.Time  // what it showed last
	changed   chan struct{}
	naming    naming
	weather
}

// instance is one entry of the backend, in its own words.
type instance struct {
	providers.Instance
	at, name string
	key      int
	attempt  int
	cascade  bool      // its volume goes with it
	hidden   bool      // reads miss it, but for a create's
	lag      int       // reads that still miss it
	steps    int       // looks since it last moved on
	found    bool      // its address has been discovered
	fresh    bool      // never started: the marker that Create writes
	locked   bool      // a task of the backend has it
	failed   *failNext // the create was accepted and failed
}

// volume is the secondary resource of an instance.
type volume struct {
	providers.Leftover
	at, name string
	key      int
}

type failNext struct {
	class providers.Class
	text  string
}

func newBackend() *backend {
	return &backend{
		instances: map[string]*instance{}, volumes: map[string]*volume{},
		address: netip.AddrFrom4([4]byte{127, 0, 0, 0}), changed: make(chan struct{}),
		naming: naming{held: map[string]chan struct{}{}},
	}
}

// BackendError is what the backend says when it refuses.
type BackendError struct {
	Status   int
	Code     string
	Resource string // what the answer is about
	Message  string
}

// Error is the backend's own text.
func (e *BackendError) Error() string {
	return fmt.Sprintf("%d %s %s: %s", e.Status, e.Code, e.Resource, e.Message)
}

// insert adds an instance, unless the name or the key is taken.
func (b *backend) insert(i *instance) error {
	if b.full {
		return errFull()
	}
	for _, other := range b.instances {
		if other.at == i.at && (other.name == i.name || i.key != 0 && other.key == i.key) {
			return errExists(i.name)
		}
	}
	i.lag = b.lag
	b.instances[i.ID] = i
	b.change()
	return nil
}

// named returns the instance with a name in a location, nil when there is none.
func (b *backend) named(at, name string) *instance {
	for _, i := range b.instances {
		if i.at == at && i.name == name {
			return i
		}
	}
	return nil
}

// visible reports whether a read shows an instance. Each read of one that lags brings
// it nearer.
func (b *backend) visible(i *instance) bool {
	if i.lag > 0 {
		i.lag--
		return false
	}
	return !i.hidden
}

// freeKey returns the lowest key that nothing in a location has. Nothing reserves it.
func (b *backend) freeKey(at string) int {
	for key := firstKey; ; key++ {
		taken := false
		for _, i := range b.instances {
			taken = taken || i.at == at && i.key == key
		}
		for _, v := range b.volumes {
			taken = taken || v.at == at && v.key == key
		}
		if !taken {
			return key
		}
	}
}

const firstKey = 100

// drop removes an instance, and its volume where that was asked for at create.
func (b *backend) drop(i *instance) {
	delete(b.instances, i.ID)
	if i.cascade {
		delete(b.volumes, i.at+"/"+i.name)
	}
	b.change()
}

// run gives an instance an address and lets it run.
func (b *backend) run(i *instance) {
	b.address = b.address.Next()
	i.IP, i.State, i.Reason = b.address.String(), providers.StateRunning, ""
	i.fresh, i.steps = false, 0
	b.change()
}

// now is the time of the backend, which never shows one time twice.
func (b *backend) now() time.Time {
	if now := time.Now(); now.After(b.clock) {
		b.clock = now
	} else {
		b.clock = b.clock.Add(time.Microsecond)
	}
	return b.clock
}

// change wakes whoever waits for the backend to move on.
func (b *backend) change() {
	close(b.changed)
	b.changed = make(chan struct{})
}

func (b *backend) count(at string) (n int) {
	for _, i := range b.instances {
		if i.at == at {
			n++
		}
	}
	return n
}

// listed returns what is in a location, in the order of the IDs.
func (b *backend) listed(at string) (all []*instance) {
	for _, id := range slices.Sorted(maps.Keys(b.instances)) {
		if i := b.instances[id]; i.at == at && b.visible(i) {
			seen := *i
			all = append(all, &seen)
		}
	}
	return all
}

// alone returns the volumes in a location that have no instance, or one that no mark
// leads to. What a create under way has made is not alone.
func (b *backend) alone(at string) (all []*volume) {
	for _, where := range slices.Sorted(maps.Keys(b.volumes)) {
		v := b.volumes[where]
		i := b.named(at, v.name)
		if v.at == at && (i == nil || i.UID == "" && i.Installation == "") && !b.naming.busy(v.name) {
			seen := *v
			all = append(all, &seen)
		}
	}
	return all
}
