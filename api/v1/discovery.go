package v1

import (
	"net"
	"strconv"
	"time"
)

// Discovery is the list of proxies that clients may use now.
type Discovery struct {
	GeneratedAt time.Time `json:"generatedAt"`
	// Stale is true when the list could not be refreshed; it is then as old as
	// generatedAt says.
	Stale   bool       `json:"stale"`
	Proxies []Endpoint `json:"proxies"`
}

// Endpoint is one proxy as clients see it.
type Endpoint struct {
	Namespace string            `json:"namespace"`
	Name      string            `json:"name"`
	UID       string            `json:"uid"`
	Provider  string            `json:"provider"`
	Region    string            `json:"region,omitempty"`
	Zone      string            `json:"zone,omitempty"`
	IP        string            `json:"ip"`
	Port      int               `json:"port"`
	URL       string            `json:"url"` // http://ip:port, IPv6 in brackets
	EgressIP  string            `json:"egressIP,omitempty"`
	Healthy   bool              `json:"healthy"`
	Labels    map[string]string `json:"labels,omitempty"`
}

// EndpointOf returns what clients see of a Proxy, and whether they may use it: it
// runs, nobody holds it, and no probe speaks against it.
func EndpointOf(p Proxy) (Endpoint, bool) {
	usable := p.Status.Phase == PhaseRunning && p.Status.IP != "" && !p.Status.Held
	healthy := p.Status.Healthy == nil || *p.Status.Healthy
	return Endpoint{
		Namespace: p.Metadata.Namespace, Name: p.Metadata.Name, UID: p.Metadata.UID,
		Provider: p.Spec.Provider, Region: p.Spec.Placement.Region, Zone: p.Spec.Placement.Zone,
		IP: p.Status.IP, Port: p.Spec.Port,
		URL:      "http://" + net.JoinHostPort(p.Status.IP, strconv.Itoa(p.Spec.Port)),
		EgressIP: p.Status.EgressIP, Healthy: usable && healthy, Labels: p.Metadata.Labels,
	}, usable && healthy
}
