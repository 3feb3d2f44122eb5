package v1

import (
	"strings"
	"time"
)

// ReportKind is what a client met at a site through a proxy.
type ReportKind string

// The kinds. Banned and captcha speak of a site and an egress IP, the others of the proxy.
const (
	ReportBanned  ReportKind = "banned"
	ReportCaptcha ReportKind = "captcha"
	ReportTimeout ReportKind = "timeout"
	ReportSlow    ReportKind = "slow"
)

// ReportKinds returns every kind.
func ReportKinds() []ReportKind {
	return []ReportKind{ReportBanned, ReportCaptcha, ReportTimeout, ReportSlow}
}

// Bans reports whether the kind says that a site turns an egress IP away.
func (k ReportKind) Bans() bool { return k == ReportBanned || k == ReportCaptcha }

// What bounds a report, in bytes.
const (
	maxReported = 512
	// MaxSticky bounds the key of a pick.
	MaxSticky = 1024
)

// Report is what a client says of a proxy.
type Report struct {
	Proxy    string     `json:"proxy"`  // its URL, host:port, or namespace/name
	Domain   string     `json:"domain"` // the site's host name
	Kind     ReportKind `json:"kind"`
	EgressIP string     `json:"egressIP,omitempty"` // that the site saw; empty: the proxy's of now
	Sticky   string     `json:"sticky,omitempty"`   // key of the pick that follows
}

// Validate returns nil or a *FieldError. Domain is only looked at where it is empty:
// what a host name may be needs tables.
func (r Report) Validate() error {
	switch {
	case r.Proxy == "":
		return &FieldError{"proxy", "", "is empty: name the proxy by its URL, host:port, or namespace/name"}
	case len(r.Proxy) > maxReported:
		return &FieldError{"proxy", show(r.Proxy), "is more than 512 bytes"}
	case r.Domain == "":
		return &FieldError{"domain", "", "is empty: give the host name of the site"}
	case !validKind(r.Kind):
		return &FieldError{"kind", show(string(r.Kind)), "is not one of " + kindNames()}
	case len(r.Sticky) > MaxSticky:
		return &FieldError{"sticky", show(r.Sticky), "is more than 1024 bytes"}
	default:
		return nil
	}
}

func validKind(k ReportKind) bool {
	for _, known := range ReportKinds() {
		if k == known {
			return true
		}
	}
	return false
}

func kindNames() string {
	var names []string
	for _, k := range ReportKinds() {
		names = append(names, string(k))
	}
	return strings.Join(names, ", ")
}

// Reported is the answer to a report.
type Reported struct {
	Version     string    `json:"version"`
	GeneratedAt time.Time `json:"generatedAt"`
	Stale       bool      `json:"stale"`
	AgeSeconds  int       `json:"ageSeconds,omitempty"`
	// Counted is false where the report is about an instance that is not there any more:
	// nothing was remembered.
	Counted bool `json:"counted"`
	// BannedUntil is how long the egress IP is left out for the domain.
	BannedUntil time.Time `json:"bannedUntil,omitzero"`
	Proxy       *Endpoint `json:"proxy"` // the next one; null: there is none to use
}
