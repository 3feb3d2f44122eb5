package activities

import (
	"fmt"
	"time"

	"github.com/egressfleet/egressfleet/providers"
)

// suspect is one thing that a listing showed: an instance, or a leftover of one.
type suspect struct {
	ID, Kind, UID, Installation, Owner string
	CreatedAt                          time.Time
}

const kindInstance = "instance"

// suspectsOf returns everything that a listing holds.
func suspectsOf(all providers.Inventory) []suspect {
	out := make([]suspect, 0, len(all.Instances)+len(all.Leftovers))
	for _, i := range all.Instances {
		out = append(out, suspect{i.ID, kindInstance, i.UID, i.Installation, i.Owner, i.CreatedAt})
	}
	for _, l := range all.Leftovers {
		out = append(out, suspect{l.ID, l.Kind, l.UID, l.Installation, l.Owner, l.CreatedAt})
	}
	return out
}

// The words for what became of a suspect. Only the first three convict.
const (
	WhyOwnerClosed   = "OwnerClosed"   // its owner's workflow has ended
	WhyOwnerReplaced = "OwnerReplaced" // its owner's workflow runs with another UID
	WhyOwnerMissing  = "OwnerMissing"  // there is no such workflow, and the instance is younger than the birth record

	WhyAdoptable    = "Adoptable"    // there is no such workflow, and the instance may be older than the database
	WhyNoUID        = "NoUID"        // whose it is cannot be told
	WhyNoOwner      = "NoOwner"      // nobody can be asked
	WhyNotPublished = "NotPublished" // the owner's workflow has not said its UID yet
	WhyOtherClosed  = "OtherClosed"  // the owner's last workflow has ended, with another UID
	WhyNotAsked     = "NotAsked"     // Temporal did not answer

	whyForeign = "Foreign"
	whyYoung   = "Young"
	whyListed  = "Listed" // Visibility shows its owner
	whyRuns    = "Runs"   // its owner's workflow runs with its UID
)

// ruling is what is held about a suspect.
type ruling struct {
	Why     string
	Convict bool
	Doubt   bool // kept, and reported
	Proof   string
}

// bench is what every suspect of one sweep is judged by.
type bench struct {
	installation string
	now, birth   time.Time
	minAge       time.Duration
	living       map[string]bool
	// unproven convicts also those whose owner is not there, or long gone.
	unproven bool
}

// acquit returns the ruling about a suspect that needs no evidence, and whether there
// is one. Visibility may acquit, it never convicts.
func (b bench) acquit(s suspect) (ruling, bool) {
	switch {
	case s.Installation != b.installation:
		return ruling{Why: whyForeign}, true
	case s.UID == "":
		return ruling{Why: WhyNoUID, Doubt: true, Proof: "it carries no UID"}, true
	case !s.CreatedAt.IsZero() && b.now.Sub(s.CreatedAt) < b.minAge:
		return ruling{Why: whyYoung}, true
	case b.living[s.UID]:
		return ruling{Why: whyListed}, true
	case s.Owner == "":
		return ruling{Why: WhyNoOwner, Doubt: true, Proof: "it carries no owner mark"}, true
	default:
		return ruling{}, false
	}
}

// judge weighs what primary storage says about the owner of a suspect. Whatever is
// not evidence keeps it, unless a person knows better.
func (b bench) judge(s suspect, o OwnerState) ruling {
	r := b.weigh(s, o)
	if b.unproven && (r.Why == WhyAdoptable || r.Why == WhyOtherClosed) {
		r.Convict, r.Doubt = true, false
	}
	return r
}

func (b bench) weigh(s suspect, o OwnerState) ruling {
	switch {
	case !o.Found:
		return b.withoutOwner(s)
	case o.Running && o.UID == s.UID:
		return ruling{Why: whyRuns}
	case o.Running && o.UID == "":
		return ruling{Why: WhyNotPublished, Doubt: true, Proof: "no worker has taken the workflow of its owner up"}
	case o.Running:
		return ruling{
			Why: WhyOwnerReplaced, Convict: true,
			Proof: fmt.Sprintf("the workflow of %s runs with UID %s", s.Owner, o.UID),
		}
	case o.Ended:
		return ruling{
			Why: WhyOwnerClosed, Convict: true,
			Proof: fmt.Sprintf("the workflow of %s with this UID is %s", s.Owner, o.Status),
		}
	default:
		return ruling{
			Why: WhyOtherClosed, Doubt: true,
			Proof: fmt.Sprintf("the last workflow of %s is %s with UID %q; of this UID nothing is known",
				s.Owner, o.Status, o.UID),
		}
	}
}

// withoutOwner convicts only what this installation's database must have known. The
// clocks of a backend and of Temporal differ, so the birth record has to be older by the
// least age.
func (b bench) withoutOwner(s suspect) ruling {
	switch {
	case s.CreatedAt.IsZero():
		return ruling{
			Why: WhyAdoptable, Doubt: true,
			Proof: fmt.Sprintf("there is no workflow of %s, and when it was created is not known", s.Owner),
		}
	case b.birth.IsZero() || !s.CreatedAt.After(b.birth.Add(b.minAge)):
		return ruling{
			Why: WhyAdoptable, Doubt: true,
			Proof: fmt.Sprintf("there is no workflow of %s, and it is older than this installation's birth record", s.Owner),
		}
	default:
		return ruling{
			Why: WhyOwnerMissing, Convict: true,
			Proof: fmt.Sprintf("there is no workflow of %s, and the birth record of %s is older",
				s.Owner, b.birth.UTC().Format(time.RFC3339)),
		}
	}
}

const (
	leastCap   = 5
	capPercent = 10
)

// capOf is how many of so many listed things one sweep may delete.
func capOf(listed int) int { return max(leastCap, listed*capPercent/100) }

// refusal says why so many convicts cannot be right; empty where they can. Leftovers
// count only together with the instances: many of them must not raise the bound for
// instances.
func refusal(suspects []suspect, rulings []ruling) string {
	var instances, instanceConvicts, all, convicts int
	for i, r := range rulings {
		if r.Why == whyForeign {
			continue
		}
		convict := 0
		if r.Convict {
			convict = 1
		}
		all, convicts = all+1, convicts+convict
		if suspects[i].Kind == kindInstance {
			instances, instanceConvicts = instances+1, instanceConvicts+convict
		}
	}
	const text = "%d of %d %s would be deleted, and %d is the most for one sweep: that is more likely a fault than " +
		"so many orphans. Look at the findings; `starter gc run --force` deletes them"
	switch {
	case instanceConvicts > capOf(instances):
		return fmt.Sprintf(text, instanceConvicts, instances, "listed instances", capOf(instances))
	case convicts > capOf(all):
		return fmt.Sprintf(text, convicts, all, "listed", capOf(all))
	default:
		return ""
	}
}
