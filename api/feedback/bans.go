package feedback

import (
	"slices"
	"sync"
	"time"
)

// bansKept bounds what a process remembers; the workflow remembers less.
const bansKept = 20_000

// bans are which sites turn which egress IPs away, and until when.
type bans struct {
	mu    sync.RWMutex
	until map[string]map[string]int64 // seconds since 1970, by domain and egress IP
	count int
}

func newBans() *bans { return &bans{until: map[string]map[string]int64{}} }

// add remembers a ban; of two, the one that ends later.
func (b *bans) add(domain, ip string, until int64) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.put(domain, ip, until)
	b.shrink()
}

// merge adds what the fleet remembers, and forgets what is over.
func (b *bans) merge(more map[string]map[string]int64, now time.Time) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for domain, ips := range more {
		for ip, until := range ips {
			b.put(domain, ip, until)
		}
	}
	b.drop(func(until int64) bool { return until <= now.Unix() })
	b.shrink()
}

func (b *bans) put(domain, ip string, until int64) {
	ips := b.until[domain]
	if ips == nil {
		ips = map[string]int64{}
		b.until[domain] = ips
	}
	if _, known := ips[ip]; !known {
		b.count++
	}
	ips[ip] = max(ips[ip], until)
}

// shrink forgets those that end first, a tenth at a time.
func (b *bans) shrink() {
	if b.count <= bansKept {
		return
	}
	var ends []int64
	for _, ips := range b.until {
		for _, until := range ips {
			ends = append(ends, until)
		}
	}
	slices.Sort(ends)
	limit := ends[b.count-bansKept*9/10]
	b.drop(func(until int64) bool { return until < limit })
	if b.count > bansKept { // all of them end at one time
		b.drop(func(int64) bool { return b.count > bansKept*9/10 })
	}
}

func (b *bans) drop(gone func(until int64) bool) {
	for domain, ips := range b.until {
		for ip, until := range ips {
			if gone(until) {
				delete(ips, ip)
				b.count--
			}
		}
		if len(ips) == 0 {
			delete(b.until, domain)
		}
	}
}

// has reports whether one of the names bans an egress IP now.
func (b *bans) has(names []string, ip string, now time.Time) bool {
	b.mu.RLock()
	defer b.mu.RUnlock()
	for _, name := range names {
		if b.until[name][ip] > now.Unix() {
			return true
		}
	}
	return false
}

// now is how many are not over.
func (b *bans) now(now time.Time) (n int) {
	b.mu.RLock()
	defer b.mu.RUnlock()
	for _, ips := range b.until {
		for _, until := range ips {
			if until > now.Unix() {
				n++
			}
		}
	}
	return n
}
