package page

import (
	"cmp"
	"net"
	"net/url"
	"strconv"
	"time"

	v1 "github.com/egressfleet/egressfleet/api/v1"
)

// Tone is how something is to be taken; it chooses a colour, which never says it alone.
type Tone string

// The tones.
const (
	Good Tone = "good"
	Bad  Tone = "bad"
	Warn Tone = "warn"
	Wait Tone = "wait" // under way
	Off  Tone = "off"
)

// Row is a proxy in the table.
type Row struct {
	Namespace, Name, Path string
	Provider, Place       string
	Phase                 Badge
	Health                Badge
	Held                  bool
	Address               string // host:port; empty while there is none
	Since, Next           Moment
	Error                 string // why it is not as it should be; empty where it is
	WorkflowURL           string // in the Temporal Web UI; empty where none is known
}

// Badge is a word with a tone.
type Badge struct {
	Text string
	Tone Tone
}

func rowOf(now time.Time, p v1.Proxy, workflow func(namespace, name string) string) Row {
	r := Row{
		Namespace: p.Metadata.Namespace, Name: p.Metadata.Name, Path: Path(p.Metadata.Namespace, p.Metadata.Name),
		Provider: p.Spec.Provider, Place: cmp.Or(p.Spec.Placement.Zone, p.Spec.Placement.Region),
		Phase: phaseBadge(p.Status.Phase), Health: healthBadge(p), Held: p.Status.Held, Address: addressOf(p),
		Since: momentOf(now, p.Status.Since), Next: momentOf(now, p.Status.NextAttemptAt), Error: fault(p),
	}
	if workflow != nil {
		r.WorkflowURL = workflow(p.Metadata.Namespace, p.Metadata.Name)
	}
	return r
}

// Path is where the page of a proxy is.
func Path(namespace, name string) string {
	return "/proxies/" + url.PathEscape(namespace) + "/" + url.PathEscape(name)
}

func addressOf(p v1.Proxy) string {
	if p.Status.IP == "" {
		return ""
	}
	return net.JoinHostPort(p.Status.IP, strconv.Itoa(p.Spec.Port))
}

func phaseBadge(phase v1.Phase) Badge {
	b := Badge{Text: string(phase), Tone: Wait}
	switch phase {
	case v1.PhaseRunning:
		b.Tone = Good
	case v1.PhaseBlocked:
		b.Tone = Bad
	case v1.PhaseDeleting:
		b.Tone = Off
	case v1.PhaseReplacing:
		b.Tone = Warn
	case v1.PhasePending, v1.PhaseProvisioning:
	}
	return b
}

// The words for health, by the choice of the filter.
const healthy, unhealthy, unknown = "healthy", "unhealthy", "unknown"

func healthBadge(p v1.Proxy) Badge {
	switch {
	case p.Status.Healthy == nil:
		return Badge{unknown, Off}
	case *p.Status.Healthy:
		return Badge{healthy, Good}
	default:
		return Badge{unhealthy, Bad}
	}
}

// fault is the condition that says why a proxy is not as it should be, in a line.
func fault(p v1.Proxy) string {
	for _, kind := range []string{
		v1.ConditionDeleting, v1.ConditionProvisioned, v1.ConditionHealthy, v1.ConditionOpenProxy,
	} {
		if c, there := p.Status.Condition(kind); there && isFault(c) {
			if c.Message == "" {
				return c.Reason
			}
			return c.Reason + ": " + c.Message
		}
	}
	return ""
}

// isFault reports whether a condition is one that somebody may have to look at.
func isFault(c v1.Condition) bool {
	switch c.Type {
	case v1.ConditionDeleting:
		return c.Reason != v1.ReasonInProgress
	case v1.ConditionProvisioned:
		return c.Status == v1.ConditionFalse && c.Reason != v1.ReasonProvisioning && c.Reason != v1.ReasonReplacing
	case v1.ConditionHealthy:
		return c.Status == v1.ConditionFalse
	case v1.ConditionOpenProxy:
		return c.Status == v1.ConditionTrue
	default:
		return false
	}
}
