package activities

import (
	"cmp"
	"fmt"
	"slices"

	v1 "github.com/egressfleet/egressfleet/api/v1"
	"github.com/egressfleet/egressfleet/providers"
)

// The words for why an instance is not adopted, besides those of a sweep for orphans.
const (
	WhyUnreadable   = "Unreadable"   // a mark cannot be read
	WhyContested    = "Contested"    // another instance has the same owner or UID
	WhyBeingDeleted = "BeingDeleted" // the backend is deleting it
)

// The words for what is known of the user-data that an instance was made with.
const (
	CloudInitNone   = "none"
	CloudInitSecret = "secret"      // a reference, which is read when it is needed
	CloudInitDigest = "digest only" // it was inline
)

// fate is what becomes of an instance.
type fate string

const (
	fateAdopt   fate = "adopt"
	fateLiving  fate = "living"
	fateOrphan  fate = "orphan"
	fateLeaving fate = "leaving"
	fateLeft    fate = "left" // nobody owns it, and it cannot be adopted
	fateForeign fate = "foreign"
)

// custodyRuling is what is held about an instance.
type custodyRuling struct {
	fate       fate
	why, proof string
	cloudInit  string
	adopted    bool
	fault      string
}

// evidence is what an instance and the listing say.
type evidence struct {
	instance providers.Instance
	unread   error  // why its marks cannot be read
	rivals   string // what else is claimed twice; empty for nothing
}

// claim rules about an instance as far as nobody has to be asked, and says whether that
// is enough. It is pure.
func (b bench) claim(e evidence) (custodyRuling, bool) {
	i := e.instance
	switch {
	case i.Installation != b.installation:
		return custodyRuling{fate: fateForeign, why: whyForeign}, true
	case i.UID == "":
		return custodyRuling{fate: fateLeft, why: WhyNoUID, proof: "it carries no UID"}, true
	case b.living[i.UID]:
		return custodyRuling{fate: fateLiving, why: whyListed}, true
	case i.Owner == "":
		return custodyRuling{fate: fateLeft, why: WhyNoOwner, proof: "it carries no owner mark"}, true
	case !isOwner(i.Owner):
		return custodyRuling{
			fate: fateLeft, why: WhyUnreadable,
			proof: fmt.Sprintf("owner mark: %.80q is not <namespace>/<name> of two DNS labels", i.Owner),
		}, true
	default:
		return custodyRuling{}, false
	}
}

func isOwner(mark string) bool {
	_, _, two := v1.NamesOf(mark)
	return two
}

// custody weighs what primary storage says about the owner of an instance. Only what
// nobody owns is adopted, and what is an orphan only where a person wants it. It is pure.
func (b bench) custody(e evidence, o OwnerState, fault error, orphans bool) custodyRuling {
	if fault != nil {
		return custodyRuling{fate: fateLeft, why: WhyNotAsked, proof: fault.Error()}
	}
	i := e.instance
	r := b.weigh(suspect{i.ID, kindInstance, i.UID, i.Installation, i.Owner, i.CreatedAt}, o)
	out := custodyRuling{why: r.Why, proof: r.Proof}
	switch {
	case r.Why == whyRuns:
		out.fate = fateLiving
		return out
	case r.Why == WhyNotPublished:
		out.fate = fateLeft
		return out
	case o.Running: // with another UID: nothing can be adopted beside it
		out.fate = fateOrphan
		return out
	case r.Why != WhyAdoptable && !orphans:
		out.fate = fateOrphan
		return out
	}
	return e.adoptable(out)
}

// adoptable rules about an instance that nobody owns.
func (e evidence) adoptable(r custodyRuling) custodyRuling {
	switch {
	case e.instance.Deleting:
		return custodyRuling{fate: fateLeaving, why: WhyBeingDeleted, proof: "the backend is deleting it"}
	case e.unread != nil:
		return custodyRuling{fate: fateLeft, why: WhyUnreadable, proof: e.unread.Error()}
	case e.rivals != "":
		// Which of them the proxy had is not known, and the other one would become an orphan.
		return custodyRuling{fate: fateLeft, why: WhyContested, proof: e.rivals}
	default:
		r.fate = fateAdopt
		return r
	}
}

// rivals counts what instances claim. Those that are being deleted claim nothing.
func rivals(all []providers.Instance, installation string, contested []string) map[string]int {
	claims := map[string]int{}
	for _, c := range contested {
		claims[c]++
	}
	for _, i := range all {
		if i.Installation != installation || i.Deleting {
			continue
		}
		for _, c := range claimsOf(i) {
			claims[c]++
		}
	}
	return claims
}

// rivalsOf says what an instance claims that another one claims, too.
func rivalsOf(i providers.Instance, claims map[string]int) string {
	if !slices.ContainsFunc(claimsOf(i), func(c string) bool { return claims[c] > 1 }) {
		return ""
	}
	return fmt.Sprintf("another instance has owner %s or UID %s, too, and which one the proxy had is not known: "+
		"delete the other one at its backend", i.Owner, i.UID)
}

// cloudInitOf is the word for what is known of the user-data.
func cloudInitOf(c v1.CloudInit, unread error) string {
	switch {
	case unread != nil:
		return ""
	case c.SecretRef != nil:
		return CloudInitSecret
	case c.IsRedacted():
		return CloudInitDigest
	default:
		return CloudInitNone
	}
}

// report counts, and lists what was left before what is adopted, and the others last.
// Who lives is not listed.
func (c *custody) report() AdoptReport {
	r := AdoptReport{Provider: c.in.Provider}
	var claims []Claim
	var order []int
	for n, ruling := range c.rulings {
		r.count(ruling)
		if ruling.fate == fateForeign || ruling.fate == fateLiving {
			continue
		}
		order = append(order, n)
	}
	rank := func(n int) int {
		f := c.rulings[n]
		return slices.Index([]bool{f.fate == fateLeft || f.fault != "", f.fate == fateAdopt, true}, true)
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(rank(a), rank(b)) })
	for _, n := range order {
		i, f := c.instances[n], c.rulings[n]
		claims = append(claims, Claim{
			ID: i.ID, UID: i.UID, Owner: i.Owner, CreatedAt: i.CreatedAt, CloudInit: f.cloudInit,
			Why: f.why, Proof: cutTo(f.proof, proofKept), Adopt: f.fate == fateAdopt,
			Adopted: f.adopted, Error: f.fault,
		})
	}
	budget := ReportBudget()
	r.Claims = Take(&budget, claims)
	r.Unlisted = len(claims) - len(r.Claims)
	return r
}

func (r *AdoptReport) count(f custodyRuling) {
	if f.fate == fateForeign {
		return
	}
	r.Listed++
	switch f.fate {
	case fateLiving:
		r.Living++
	case fateOrphan:
		r.Orphans++
	case fateLeaving:
		r.Leaving++
	case fateAdopt:
		r.Adoptable++
		if f.adopted {
			r.Adopted++
		}
	case fateLeft, fateForeign:
		r.Left++
	}
}
