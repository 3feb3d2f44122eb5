package kubernetes

import (
	"errors"
	"fmt"
	"net/netip"
	"slices"
)

// ranges are who may use the proxies, and what these never connect to.
type ranges struct {
	clients []netip.Prefix // probers included
	denied  []netip.Prefix
}

// The widest ranges that are no open proxy. fc00::/7 is all of the private addresses.
const (
	widestV4 = 8
	widestV6 = 16
)

func privateV6() netip.Prefix { return netip.MustParsePrefix("fc00::/7") }

// alwaysDenied are loopback, the unspecified addresses and the link-local ones, among
// which clouds serve the credentials of a node.
func alwaysDenied() []netip.Prefix {
	return []netip.Prefix{
		netip.MustParsePrefix("0.0.0.0/8"), netip.MustParsePrefix("127.0.0.0/8"), netip.MustParsePrefix("169.254.0.0/16"),
		netip.MustParsePrefix("::/127"), netip.MustParsePrefix("fe80::/10"), netip.MustParsePrefix("fd00:ec2::254/128"),
	}
}

func resolveRanges(c Config, set *settings) error {
	own, err := prefixes("clusterRanges", c.ClusterRanges, narrow)
	if err != nil {
		return err
	}
	clients, err := prefixes("allowedClients", c.AllowedClients, narrow)
	if err != nil {
		return err
	}
	if len(clients) == 0 {
		clients = own
	}
	if len(clients) == 0 {
		return errors.New("allowedClients: [] must name the ranges of those who may use the proxies, " +
			"or clusterRanges those of the cluster itself, which are then allowed")
	}
	probers, err := prefixes("probers", c.Probers, narrow)
	if err != nil {
		return err
	}
	denied, err := prefixes("deniedTargets", c.DeniedTargets, anyWidth)
	if err != nil {
		return err
	}
	set.ranges = ranges{clients: unique(clients, probers), denied: unique(alwaysDenied(), denied)}
	return nil
}

func prefixes(key string, values []string, check func(netip.Prefix) error) ([]netip.Prefix, error) {
	var list []netip.Prefix
	for i, value := range values {
		prefix, err := netip.ParsePrefix(value)
		if err != nil {
			return nil, fmt.Errorf("%s[%d]: %q is no CIDR, such as 10.0.0.0/8", key, i, value)
		}
		if prefix != prefix.Masked() {
			return nil, fmt.Errorf("%s[%d]: %q has bits beyond its length, want %q", key, i, value, prefix.Masked())
		}
		if err := check(prefix); err != nil {
			return nil, fmt.Errorf("%s[%d]: %q %w", key, i, value, err)
		}
		list = append(list, prefix)
	}
	return list, nil
}

// narrow refuses a range that would make the proxies open to the world.
func narrow(p netip.Prefix) error {
	widest := widestV4
	if p.Addr().Is6() {
		widest = widestV6
		if private := privateV6(); private.Contains(p.Addr()) && p.Bits() >= private.Bits() {
			return nil
		}
	}
	if p.Bits() < widest {
		return fmt.Errorf("is wider than /%d: the proxies would be open to strangers", widest)
	}
	return nil
}

func anyWidth(netip.Prefix) error { return nil }

// unique joins two lists, in their order.
func unique(a, b []netip.Prefix) []netip.Prefix {
	var list []netip.Prefix
	for _, p := range slices.Concat(a, b) {
		if !slices.Contains(list, p) {
			list = append(list, p)
		}
	}
	return list
}
