package feedback

import (
	"cmp"
	"hash/fnv"
	"slices"
	"strconv"
	"strings"
	"time"

	"go.temporal.io/sdk/workflow"

	"github.com/egressfleet/egressfleet/activities"
)

// What bounds the state, which crosses from run to run as one payload: all of it stays
// below 200 KiB as JSON.
const (
	bansBytes  = 96 << 10
	casesBytes = 64 << 10
	actsKept   = 200

	banCost  = 16  // of an entry beside its IP
	siteCost = 8   // of a domain beside its name
	caseCost = 200 // of a case beside its names
	seenCost = 28  // of one domain in a case
	seenKept = 32  // domains of one kind in a case: more than any threshold
)

// budgetSpan is what a budget is for.
const budgetSpan = time.Hour

// State is everything that is remembered. Serialised: add fields, never rename or retype.
type State struct {
	Policy   Policy                      `json:"policy"`
	Bans     map[string]map[string]int64 `json:"bans,omitempty"`  // as in Snapshot
	Cases    map[string]Case             `json:"cases,omitempty"` // by namespace/name
	Acts     []Act                       `json:"acts,omitempty"`  // of the last hour, the oldest first
	Revision int64                       `json:"revision,omitempty"`
	Dropped  int64                       `json:"dropped,omitempty"`
	Looks    int64                       `json:"looks,omitempty"`
	NextLook time.Time                   `json:"nextLook,omitzero"`
}

// Case is what speaks against one instance. Domains are kept as their hash: only how
// many there are counts. Serialised.
type Case struct {
	activities.Accused
	Bans map[string]int64 `json:"bans,omitempty"` // when last, in seconds since 1970
	Slow map[string]int64 `json:"slow,omitempty"`
	// Refused is why nothing was done so far, as it was told.
	Refused string `json:"refused,omitempty"`
}

// Act is a hold or a replacement that was asked for. Serialised.
type Act struct {
	Provider string    `json:"provider"`
	Proxy    string    `json:"proxy"`
	At       time.Time `json:"at"`
}

// absorb takes a batch over. It is pure.
func (s *State) absorb(now time.Time, b Batch) {
	s.listen(now, b)
	s.tidy(now)
}

// listen remembers a batch; tidy has to follow. It costs what the batch holds, however
// much is remembered. It is pure.
func (s *State) listen(now time.Time, b Batch) {
	s.Policy = b.Policy.bounded()
	for _, r := range b.Reports {
		s.hear(now, r)
	}
}

// tidy drops what is over or too much. It costs what is remembered. It is pure.
func (s *State) tidy(now time.Time) {
	s.forget(now)
	s.shrink()
}

// hear remembers one report. What a clock that is ahead says is true now.
func (s *State) hear(now time.Time, r Report) {
	at := r.At
	if at.After(now) {
		at = now
	}
	if r.Kind.Bans() && r.EgressIP != "" && r.Domain != "" {
		s.ban(r.Domain, r.EgressIP, at.Add(s.Policy.BanFor).Unix())
	}
	if s.Cases == nil {
		s.Cases = map[string]Case{}
	}
	of := activities.Accused{
		Provider: r.Provider, Namespace: r.Namespace, Name: r.Name, UID: r.UID, MadeAt: r.MadeAt,
	}
	c, known := s.Cases[of.Key()]
	if known && !c.Is(of) {
		if c.MadeAt.After(of.MadeAt) {
			return // about the instance before
		}
		known = false
	}
	if !known {
		c = Case{Accused: of, Bans: map[string]int64{}, Slow: map[string]int64{}}
	}
	c.note(r, at)
	s.Cases[of.Key()] = c
}

func (s *State) ban(domain, ip string, until int64) {
	if s.Bans == nil {
		s.Bans = map[string]map[string]int64{}
	}
	if s.Bans[domain] == nil {
		s.Bans[domain] = map[string]int64{}
	}
	if until > s.Bans[domain][ip] {
		s.Bans[domain][ip] = until
		s.Revision++
	}
}

// note counts a domain once.
func (c *Case) note(r Report, at time.Time) {
	if c.Bans == nil {
		c.Bans = map[string]int64{}
	}
	if c.Slow == nil {
		c.Slow = map[string]int64{}
	}
	seen := c.Slow
	if r.Kind.Bans() {
		seen = c.Bans
	}
	key := hashed(r.Domain)
	if _, known := seen[key]; known || len(seen) < seenKept {
		seen[key] = max(seen[key], at.Unix())
	}
}

func hashed(domain string) string {
	h := fnv.New64a()
	_, _ = h.Write([]byte(domain))
	return strconv.FormatUint(h.Sum64(), 36)
}

// forget drops what is over.
func (s *State) forget(now time.Time) {
	for _, domain := range workflow.DeterministicKeys(s.Bans) {
		for _, ip := range workflow.DeterministicKeys(s.Bans[domain]) {
			if s.Bans[domain][ip] <= now.Unix() {
				s.unban(domain, ip)
			}
		}
	}
	from := now.Add(-s.Policy.Window).Unix()
	for _, name := range workflow.DeterministicKeys(s.Cases) {
		c := s.Cases[name]
		if since(c.Bans, from)+since(c.Slow, from) == 0 {
			delete(s.Cases, name)
		}
	}
	s.Acts = slices.DeleteFunc(s.Acts, func(a Act) bool { return now.Sub(a.At) >= budgetSpan })
}

func (s *State) unban(domain, ip string) {
	delete(s.Bans[domain], ip)
	if len(s.Bans[domain]) == 0 {
		delete(s.Bans, domain)
	}
	s.Revision++
}

// since drops what was seen before, and returns how many are left.
func since(seen map[string]int64, from int64) int {
	for _, key := range workflow.DeterministicKeys(seen) {
		if seen[key] < from {
			delete(seen, key)
		}
	}
	return len(seen)
}

// dated is something with the time that says what is dropped first.
type dated struct {
	a, b string
	at   int64
	cost int
}

func older(x, y dated) int {
	return cmp.Or(cmp.Compare(x.at, y.at), strings.Compare(x.a, y.a), strings.Compare(x.b, y.b))
}

// over returns what has to go for the rest to fit, the oldest first.
func over(all []dated, limit int) []dated {
	size := 0
	for _, d := range all {
		size += d.cost
	}
	slices.SortFunc(all, older)
	for i, d := range all {
		if size <= limit {
			return all[:i]
		}
		size -= d.cost
	}
	return all
}

// shrink keeps the state within its bounds: the bans that end first go first, and the
// cases that nobody has spoken of for the longest time.
func (s *State) shrink() {
	var bans, cases []dated
	for _, domain := range workflow.DeterministicKeys(s.Bans) {
		for _, ip := range workflow.DeterministicKeys(s.Bans[domain]) {
			// A domain with one IP pays for its name; with more, they share it.
			share := (len(domain)+siteCost)/len(s.Bans[domain]) + 1
			bans = append(bans, dated{domain, ip, s.Bans[domain][ip], len(ip) + share + banCost})
		}
	}
	for _, d := range over(bans, bansBytes) {
		s.unban(d.a, d.b)
		s.Dropped++
	}
	for _, name := range workflow.DeterministicKeys(s.Cases) {
		c := s.Cases[name]
		cost := caseCost + 2*len(name) + len(c.Provider) + seenCost*(len(c.Bans)+len(c.Slow))
		cases = append(cases, dated{name, "", c.last(), cost})
	}
	for _, d := range over(cases, casesBytes) {
		delete(s.Cases, d.a)
	}
	if more := len(s.Acts) - actsKept; more > 0 {
		s.Acts = s.Acts[more:]
	}
}

// last is when a case was last spoken of.
func (c Case) last() (at int64) {
	for _, seen := range []map[string]int64{c.Bans, c.Slow} {
		for _, key := range workflow.DeterministicKeys(seen) {
			at = max(at, seen[key])
		}
	}
	return at
}

// bounded is the policy within what a state can hold, whoever sent it.
func (p Policy) bounded() Policy {
	p.BanFor = min(max(p.BanFor, time.Minute), MaxBan)
	p.Window = min(max(p.Window, time.Minute), MaxWindow)
	p.HoldFor = min(max(p.HoldFor, time.Minute), MaxWindow)
	p.Replace, p.Hold = min(max(p.Replace, 0), seenKept), min(max(p.Hold, 0), seenKept)
	p.Budget, p.Floor = min(max(p.Budget, 0), MaxBudget), min(max(p.Floor, 0), 100)
	return p
}

// The most that a policy may say.
const (
	MaxBan       = 7 * 24 * time.Hour
	MaxWindow    = 24 * time.Hour
	MaxThreshold = seenKept
	MaxBudget    = 60
)
