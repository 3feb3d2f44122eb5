package gcp

import (
	"errors"
	"fmt"
	"net/netip"
	"net/url"
	"slices"
	"strings"

	"github.com/egressfleet/egressfleet/providers"
)

func (c Config) checkNames() error {
	if !projectForm.MatchString(c.Project) {
		return fmt.Errorf("project: %q is not the ID of a project", c.Project)
	}
	for key, value := range map[string]string{
		"machineType": c.MachineType, "networkTag": c.NetworkTag, "diskType": c.DiskType,
	} {
		if !resource.MatchString(value) {
			return fmt.Errorf("%s: %q is not a name: a-z, 0-9 and '-', beginning with a letter", key, value)
		}
	}
	if _, err := imagePath(c.Project, c.Image); err != nil {
		return fmt.Errorf("image: %w", err)
	}
	if _, err := networkPath(c.Project, c.Network); err != nil {
		return fmt.Errorf("network: %w", err)
	}
	if _, err := subnetworkPath(c.Project, c.Subnetwork, "us-central1"); err != nil {
		return fmt.Errorf("subnetwork: %w", err)
	}
	if c.ServiceAccount != "" && !account.MatchString(c.ServiceAccount) {
		return fmt.Errorf("serviceAccount: %q is not the e-mail address of a service account", c.ServiceAccount)
	}
	return nil
}

func (c Config) checkZones() error {
	for i, zone := range c.Zones {
		key := fmt.Sprintf("zones[%d]", i)
		if err := providers.CheckLocation(key, zone); err != nil {
			return err
		}
		if !zoneForm.MatchString(zone) {
			return fmt.Errorf("%s: %q is not a zone, such as us-central1-a", key, zone)
		}
		if slices.Index(c.Zones, zone) != i {
			return fmt.Errorf("%s: %q is there twice", key, zone)
		}
	}
	return nil
}

func (c Config) checkChoices() error {
	if c.Addressing != addressingExternal && c.Addressing != addressingInternal {
		return fmt.Errorf("addressing: %q is neither %s nor %s", c.Addressing, addressingExternal, addressingInternal)
	}
	if c.Firewall != firewallManual && c.Firewall != firewallManaged {
		return fmt.Errorf("firewall: %q is neither %s nor %s", c.Firewall, firewallManual, firewallManaged)
	}
	if c.DiskSizeGb < 1 || c.DiskSizeGb > largestDiskGb {
		return fmt.Errorf("diskSizeGb: %d is not between 1 and %d", c.DiskSizeGb, largestDiskGb)
	}
	return nil
}

func (c Config) checkLabels() error {
	for key, value := range c.Labels {
		if err := checkLabel("labels", key, value); err != nil {
			return err
		}
	}
	return nil
}

func (c Config) checkRanges() error {
	if c.Firewall == firewallManaged && len(c.SourceRanges) == 0 {
		return fmt.Errorf("sourceRanges: [] lets nobody in; the firewall %q needs at least one CIDR", c.Firewall)
	}
	if c.Firewall != firewallManaged && len(c.SourceRanges) > 0 {
		return fmt.Errorf("sourceRanges: %q has no use without the firewall %q", c.SourceRanges, firewallManaged)
	}
	for i, text := range c.SourceRanges {
		if prefix, err := netip.ParsePrefix(text); err != nil || prefix.Masked() != prefix {
			return fmt.Errorf("sourceRanges[%d]: %q is not a CIDR, such as 203.0.113.0/24", i, text)
		}
	}
	return nil
}

func (c Config) checkEndpoint() error {
	if c.Endpoint == "" {
		return nil
	}
	// A user or a query could be a secret, so the value is not told.
	u, err := url.Parse(c.Endpoint)
	if err != nil || u.Host == "" || u.User != nil || u.RawQuery != "" || !strings.HasPrefix(u.Scheme, "http") {
		return errors.New("endpoint: is not the URL of a server, such as https://compute.googleapis.com")
	}
	if u.Scheme != "https" && !c.InsecureNoAuthentication && !loopback(u.Hostname()) {
		return fmt.Errorf("endpoint: %q is not https: it would be sent the credential in the clear", u.Scheme+"://"+u.Host)
	}
	return nil
}

func (c Config) checkInsecure() error {
	switch {
	case !c.InsecureNoAuthentication:
		return nil
	case c.Endpoint == "":
		return fmt.Errorf("insecureNoAuthentication: %t needs an endpoint: Google takes no call without a credential", true)
	case c.CredentialsFile != "":
		return fmt.Errorf("credentialsFile: %q is not used with insecureNoAuthentication", c.CredentialsFile)
	}
	return nil
}

func loopback(host string) bool {
	addr, err := netip.ParseAddr(host)
	return host == "localhost" || err == nil && addr.IsLoopback()
}
