package v1

import (
	"net"
	"strconv"
	"time"
)

// DiscoveryVersion is the shape of the documents of discovery. Fields are added to a
// version; none is renamed or taken away.
const DiscoveryVersion = "v1"

// Pick is the answer of discovery to who wants one proxy.
type Pick struct {
	Version     string    `json:"version"`
	GeneratedAt time.Time `json:"generatedAt"`
	Stale       bool      `json:"stale"`
	AgeSeconds  int       `json:"ageSeconds,omitempty"`
	Proxy       *Endpoint `json:"proxy"` // null: there is none to use
}

// Discovery is the list of proxies that clients may use now.
type Discovery struct {
	Version     string    `json:"version"` // DiscoveryVersion
	GeneratedAt time.Time `json:"generatedAt"`
	// Stale is true when the list could not be refreshed; it is then as old as
	// generatedAt says.
	Stale bool `json:"stale"`
	// AgeSeconds is how old a stale list is.
	AgeSeconds int        `json:"ageSeconds,omitempty"`
	Proxies    []Endpoint `json:"proxies"`
}

// Endpoint is one proxy as clients see it.
type Endpoint struct {
	Namespace string `json:"namespace"`
	Name      string `json:"name"`
	UID       string `json:"uid"`
	Provider  string `json:"provider"`
	Region    string `json:"region,omitempty"`
	Zone      string `json:"zone,omitempty"`
	IP        string `json:"ip"`
	Port      int    `json:"port"`
	URL       string `json:"url"` // http://ip:port, IPv6 in brackets
	EgressIP  string `json:"egressIP,omitempty"`
	Healthy   bool   `json:"healthy"`
	// Unprobed says that no probe has looked yet: it counts as healthy so far.
	Unprobed bool `json:"unprobed,omitempty"`
	// LeaveAt is when the proxy is replaced, unless something changes before: a client
	// that keeps connections should be gone by then.
	LeaveAt time.Time         `json:"leaveAt,omitzero"`
	Labels  map[string]string `json:"labels,omitempty"`
}

// EndpointOf returns what clients see of a Proxy, and whether they may use it: it
// runs, nobody holds it, and no probe speaks against it.
func EndpointOf(p Proxy) (Endpoint, bool) {
	endpoint, reachable := ReachableOf(p)
	return endpoint, reachable && endpoint.Healthy
}

// ReachableOf is EndpointOf with those that a probe speaks against.
func ReachableOf(p Proxy) (Endpoint, bool) {
	reachable := p.Status.Phase == PhaseRunning && p.Status.IP != "" && !p.Status.Held
	healthy := p.Status.Healthy == nil || *p.Status.Healthy
	return Endpoint{
		Namespace: p.Metadata.Namespace, Name: p.Metadata.Name, UID: p.Metadata.UID,
		Provider: p.Spec.Provider, Region: p.Spec.Placement.Region, Zone: p.Spec.Placement.Zone,
		IP: p.Status.IP, Port: p.Spec.Port,
		URL:      "http://" + net.JoinHostPort(p.Status.IP, strconv.Itoa(p.Spec.Port)),
		EgressIP: p.Status.EgressIP, Healthy: reachable && healthy, Unprobed: p.Status.Healthy == nil,
		LeaveAt: leaveAt(p), Labels: p.Metadata.Labels,
	}, reachable
}

// leaveAt is when an unhealthy Proxy is replaced, unless it recovers.
func leaveAt(p Proxy) time.Time {
	after := p.Spec.HealthCheck.ReplaceAfter.Or(0)
	c, told := p.Status.Condition(ConditionHealthy)
	if after == 0 || !told || c.Status != ConditionFalse {
		return time.Time{}
	}
	return c.LastTransitionTime.Add(after)
}
