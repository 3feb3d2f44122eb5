package gcp

import (
	"cmp"
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/egressfleet/egressfleet/providers"
)

// candidates are the zones that a placement allows.
type candidates struct {
	region string   // to be asked for its zones; "" when zones are known
	zones  []string // in no order
}

// locate returns where a placement may be put, out of the configured zones. An error
// names the field and the value.
func locate(p providers.Placement, configured []string) (candidates, error) {
	switch {
	case p.Zone != "":
		return locateZone(p, configured)
	case p.Region != "":
		if !regionForm.MatchString(p.Region) {
			return candidates{}, permanent("placement.region: %q is not a region, such as us-central1", p.Region)
		}
		if len(configured) == 0 {
			return candidates{region: p.Region}, nil
		}
		in := slices.DeleteFunc(slices.Clone(configured), func(z string) bool { return regionOf(z) != p.Region })
		if len(in) == 0 {
			return candidates{}, permanent("placement.region: %q has none of the zones of this provider: %s",
				p.Region, strings.Join(configured, ", "))
		}
		return candidates{zones: in}, nil
	case len(configured) > 0:
		return candidates{zones: configured}, nil
	}
	return candidates{}, permanent(`placement.zone: "" and placement.region: "" say nothing, ` +
		`and the provider has no zones of its own`)
}

func locateZone(p providers.Placement, configured []string) (candidates, error) {
	switch {
	case !zoneForm.MatchString(p.Zone):
		return candidates{}, permanent("placement.zone: %q is not a zone, such as us-central1-a", p.Zone)
	case p.Region != "" && p.Region != regionOf(p.Zone):
		return candidates{}, permanent("placement.region: %q is not the region of the zone %q", p.Region, p.Zone)
	case len(configured) > 0 && !slices.Contains(configured, p.Zone):
		return candidates{}, permanent("placement.zone: %q is none of the zones of this provider: %s",
			p.Zone, strings.Join(configured, ", "))
	}
	return candidates{zones: []string{p.Zone}}, nil
}

// order sorts zones for a name: the same at every worker, and spread over names. Those
// that were out of capacity lately come last.
func order(name string, zones []string, out func(zone string) bool) []string {
	sorted := slices.Clone(zones)
	slices.SortFunc(sorted, func(a, b string) int {
		return cmp.Or(boolean(out(a))-boolean(out(b)), cmp.Compare(weight(name, b), weight(name, a)), cmp.Compare(a, b))
	})
	return sorted
}

func boolean(b bool) int {
	if b {
		return 1
	}
	return 0
}

// weight is that of rendezvous hashing: adding a zone moves only the names that it gets.
func weight(name, zone string) uint64 {
	sum := sha256.Sum256([]byte(name + "/" + zone))
	return binary.BigEndian.Uint64(sum[:8])
}

// requestID is the same for every repetition of one create in one zone and no other: a
// UUID, as the API wants it, of UID, zone and attempt.
func requestID(uid, zone string, attempt int) string {
	sum := sha256.Sum256(fmt.Appendf(nil, "%s\n%s\n%d", uid, zone, attempt))
	const version, variant = 0x80, 0x80 // of RFC 9562: 8 is for such hashes
	sum[6], sum[8] = sum[6]&0x0f|version, sum[8]&0x3f|variant
	return fmt.Sprintf("%x-%x-%x-%x-%x", sum[:4], sum[4:6], sum[6:8], sum[8:10], sum[10:16])
}

// stockouts remembers which zones had no capacity. It only changes the order in which
// zones are tried, and is right to be lost: what was made is looked for in all of them.
type stockouts struct {
	lasts time.Duration
	mu    sync.Mutex
	until map[string]time.Time // by zone
}

func newStockouts(lasts time.Duration) *stockouts {
	return &stockouts{lasts: lasts, until: map[string]time.Time{}}
}

// note remembers that a zone had no capacity at a time.
func (s *stockouts) note(zone string, at time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if until := at.Add(s.lasts); until.After(s.until[zone]) {
		s.until[zone] = until
	}
}

// out reports whether a zone had no capacity lately.
func (s *stockouts) out(zone string, now time.Time) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	until, known := s.until[zone]
	if known && !now.Before(until) {
		delete(s.until, zone)
		known = false
	}
	return known
}
