package page

import (
	"cmp"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	v1 "github.com/egressfleet/egressfleet/api/v1"
)

// ProxyInput is what the page of a proxy is made from.
type ProxyInput struct {
	Viewer   Viewer
	Now      time.Time
	Proxy    v1.Proxy
	Events   []v1.Event // the newest last
	NoEvents string     // why there are none
	Workflow func(namespace, name string) string
	Done     string // what was just asked for: the name of an action
	Key      string // names the next request
}

// Proxy is the page of a proxy.
type Proxy struct {
	Viewer
	Title string
	Row
	Facts      []Fact
	Labels     []string
	Conditions []Condition
	Events     []Event // the newest first
	NoEvents   string
	LastError  *Event
	Notice     string
	Key        string
	Gone       bool // it is being deleted: nothing else can be asked of it
}

// Fact is a word and what it is.
type Fact struct{ Label, Value string }

// Condition is a condition as it is shown.
type Condition struct {
	Type, Reason, Message string
	Status                Badge
	Since                 Moment
}

// Event is a line of the timeline.
type Event struct {
	Phase                 Badge
	Reason, Class, Detail string
	At                    Moment
}

// NewProxy is what the page of a proxy shows.
func NewProxy(in ProxyInput) Proxy {
	p := Proxy{
		Viewer: in.Viewer, Title: in.Proxy.Metadata.Name, Row: rowOf(in.Now, in.Proxy, in.Workflow), Facts: facts(in),
		NoEvents: in.NoEvents, Notice: notices[in.Done], Key: in.Key, Gone: in.Proxy.Status.Phase == v1.PhaseDeleting,
	}
	for _, name := range slices.Sorted(maps.Keys(in.Proxy.Metadata.Labels)) {
		p.Labels = append(p.Labels, name+"="+in.Proxy.Metadata.Labels[name])
	}
	for _, c := range in.Proxy.Status.Conditions {
		p.Conditions = append(p.Conditions, Condition{
			c.Type, c.Reason, c.Message, Badge{string(c.Status), conditionTone(c)}, momentOf(in.Now, c.LastTransitionTime),
		})
	}
	for _, e := range slices.Backward(in.Events) {
		shown := Event{phaseBadge(e.Phase), e.Reason, e.Class, e.Detail, momentOf(in.Now, e.At)}
		p.Events = append(p.Events, shown)
		if e.Class != "" && p.LastError == nil {
			p.LastError = &shown
		}
	}
	return p
}

// conditionTone is how the status of a condition is to be taken.
func conditionTone(c v1.Condition) Tone {
	switch {
	case isFault(c):
		return Bad
	case c.Type == v1.ConditionHeld && c.Status == v1.ConditionTrue:
		return Warn
	case c.Status == v1.ConditionTrue, c.Type == v1.ConditionOpenProxy && c.Status == v1.ConditionFalse:
		return Good
	default:
		return Off
	}
}

// facts are what is known of a proxy, without what is empty.
func facts(in ProxyInput) (known []Fact) {
	p := in.Proxy
	for _, f := range []Fact{
		{"Address", addressOf(p)},
		{"Egress address", p.Status.EgressIP},
		{"Provider", p.Spec.Provider},
		{"Instance", p.Status.ProviderID},
		{"Region", p.Spec.Placement.Region},
		{"Zone", p.Spec.Placement.Zone},
		{"Machine type", p.Spec.Placement.MachineType},
		{"Image", p.Spec.Placement.Image},
		{"Instance made", momentOf(in.Now, p.Status.InstanceCreatedAt).Text},
		{"Proxy made", momentOf(in.Now, p.Metadata.CreatedAt).Text},
		{"Generation", generation(p)},
		{"UID", p.Metadata.UID},
		{"Replaced when unhealthy for", string(p.Spec.HealthCheck.ReplaceAfter)},
		{"Health check", disabled(p.Spec.HealthCheck.Disabled)},
	} {
		if f.Value != "" {
			known = append(known, f)
		}
	}
	return known
}

func disabled(is bool) string {
	if is {
		return "disabled"
	}
	return ""
}

// generation says how far the instance follows the spec.
func generation(p v1.Proxy) string {
	text := strconv.FormatInt(p.Metadata.Generation, 10)
	if p.Status.ObservedGeneration != p.Metadata.Generation {
		text += " (the instance is of " + strconv.FormatInt(p.Status.ObservedGeneration, 10) + ")"
	}
	return text
}

// notices say what was asked for, by the name of the action.
var notices = map[string]string{
	"hold":    "Held: it is out of discovery until it is resumed.",
	"resume":  "Resumed: it is in discovery again.",
	"replace": "Replacing: another instance takes the place of this one.",
	"retry":   "Asked to try again now.",
	"delete":  "Deleting: the proxy goes once its instance is gone.",
}

// NewAsk asks whether a replace or a delete is meant; false for what needs no asking.
func NewAsk(viewer Viewer, namespace, name, action, key string) (Ask, bool) {
	a := Ask{
		Viewer: viewer, Namespace: namespace, Name: name, Path: Path(namespace, name), Action: action, Key: key,
	}
	switch action {
	case "replace":
		a.Title, a.Label = "Replace the instance of "+name+"?", "Replace the instance"
		a.Says = []string{
			"The instance is deleted, and another one is made from the same spec.",
			"The proxy leaves discovery until the new instance runs. Its address may be another one.",
		}
	case "delete":
		a.Title, a.Label, a.Danger = "Delete "+name+"?", "Delete the proxy", true
		a.Says = []string{
			"The instance is deleted at its backend, and then the proxy itself.",
			"This cannot be taken back. A proxy that is only to leave discovery is held instead.",
		}
	}
	return a, a.Title != ""
}

// NewSorry says what went wrong, and what to do.
func NewSorry(viewer Viewer, status int, title, detail string) Sorry {
	s := Sorry{Viewer: viewer, Status: status, Title: title, Detail: sentence(detail)}
	switch status {
	case 403:
		s.Says = "Nothing was changed. If this is your work, ask whoever runs the fleet for a token with that scope."
	case 404:
		s.Says = "It may have been deleted meanwhile, or the address has a slip in it."
	case 429, 503:
		s.Says = "The proxies themselves are not affected by that. Try again in a few seconds."
	case 409, 412, 422, 400:
		s.Says = "Nothing was changed. Go back, correct it, and try again."
	default:
		s.Says = "The log of the API says more."
	}
	return s
}

// sentence begins with a capital and ends with a full stop.
func sentence(text string) string {
	if text == "" {
		return ""
	}
	return cmp.Or(strings.ToUpper(text[:1]), "") + strings.TrimSuffix(text[1:], ".") + "."
}
