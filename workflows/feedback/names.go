package feedback

import (
	"fmt"
	"strings"
	"time"

	v1 "github.com/egressfleet/egressfleet/api/v1"
)

// Names on the wire. Changing one breaks running workflows and their callers.
const (
	WorkflowType = "Feedback"
	// SignalReports carries a Batch.
	SignalReports = "reports"
	// QueryBans takes the revision that its caller has, and answers with a Snapshot.
	QueryBans = "bans"

	idPrefix   = "feedback/"
	errInvalid = "InvalidInput"
)

// WorkflowID is the only place where the ID is written.
func WorkflowID(installation string) string { return idPrefix + installation }

func checkID(workflowID string) error {
	if name, ok := strings.CutPrefix(workflowID, idPrefix); !ok || !v1.IsName(name) {
		return fmt.Errorf("workflow ID: %q is not %s<installation>, a DNS label", workflowID, idPrefix)
	}
	return nil
}

// MaxBatch is how many reports one Batch may carry: with the longest names a server
// knows, that is below 200 KiB.
const MaxBatch = 250

// Batch is what a process of the API has heard since its last one. Serialised: add
// fields, never rename or retype.
type Batch struct {
	Policy  Policy   `json:"policy"` // as that process is configured; the last one counts
	Reports []Report `json:"reports,omitempty"`
}

// Report is what a client said of an instance. Repeating one changes nothing.
// Serialised.
type Report struct {
	Provider  string        `json:"provider"`
	Namespace string        `json:"namespace"`
	Name      string        `json:"name"`
	UID       string        `json:"uid"`
	MadeAt    time.Time     `json:"madeAt,omitzero"` // the instance
	EgressIP  string        `json:"egressIP"`
	Domain    string        `json:"domain"` // lower case, ASCII
	Kind      v1.ReportKind `json:"kind"`
	At        time.Time     `json:"at"`
}

// Policy is what reports lead to. Serialised.
type Policy struct {
	BanFor  time.Duration `json:"banFor"`  // how long an egress IP is left out for a domain
	Window  time.Duration `json:"window"`  // how long a report counts against a proxy
	Replace int           `json:"replace"` // by so many domains: banned; 0: never
	Hold    int           `json:"hold"`    // on so many domains: slow; 0: never
	HoldFor time.Duration `json:"holdFor"` // how long a hold lasts
	Budget  int           `json:"budget"`  // holds and replacements of a provider within an hour
	Floor   int           `json:"floor"`   // percent of a provider's proxies that stay usable
}

// Snapshot are the bans. Serialised.
type Snapshot struct {
	// Revision names what is remembered. Where it is the caller's, Bans are left out.
	Revision int64 `json:"revision"`
	// Bans are when each ends, in seconds since 1970, by domain and egress IP.
	Bans map[string]map[string]int64 `json:"bans,omitempty"`
	// Dropped counts bans that were forgotten early, because there are too many.
	Dropped int64 `json:"dropped,omitempty"`
}
