package gcp

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"slices"

	"google.golang.org/api/googleapi"
)

// needed are the permissions that the provider's calls need, as the guide lists them.
// Compute Engine tests those of a resource that is there; for the project they are
// asked of Resource Manager, which needs no permission itself.
// https://cloud.google.com/resource-manager/reference/rest/v3/projects/testIamPermissions
func (s settings) needed() []string {
	need := []string{
		"compute.disks.create", "compute.disks.delete", "compute.disks.get", "compute.disks.list",
		"compute.disks.setLabels", "compute.instances.create", "compute.instances.delete", "compute.instances.get",
		"compute.instances.list", "compute.instances.setLabels", "compute.instances.setMetadata",
		"compute.instances.setTags", "compute.projects.get", "compute.regions.get", "compute.subnetworks.use",
		"compute.zoneOperations.get", "compute.zoneOperations.list", "compute.zones.get",
	}
	if s.Addressing == addressingExternal {
		need = append(need, "compute.subnetworks.useExternalIp")
	}
	if s.ServiceAccount != "" {
		need = append(need, "compute.instances.setServiceAccount")
	}
	if s.Firewall == firewallManaged {
		need = append(need, "compute.firewalls.create", "compute.firewalls.delete", "compute.firewalls.get",
			"compute.firewalls.update", "compute.networks.updatePolicy")
	}
	slices.Sort(need)
	return need
}

const (
	resourceManager = "https://cloudresourcemanager.googleapis.com"
	largestAnswer   = 1 << 20
)

// granted asks without Google's client: it is one call, and its library is another one.
func (r *rest) granted(ctx context.Context, permissions []string) ([]string, error) {
	return ask(ctx, r, func(ctx context.Context) ([]string, error) {
		body, err := json.Marshal(map[string][]string{"permissions": permissions})
		if err != nil {
			return nil, err
		}
		url := cmp.Or(r.endpoint, resourceManager) + "/v3/projects/" + r.projectID + ":testIamPermissions"
		request, err := http.NewRequestWithContext(ctx, http.MethodPost, url, bytes.NewReader(body))
		if err != nil {
			return nil, err
		}
		request.Header.Set("Content-Type", "application/json")
		answer, err := r.rounds.RoundTrip(request)
		if err != nil {
			return nil, err
		}
		defer func() { _ = answer.Body.Close() }()
		text, err := io.ReadAll(io.LimitReader(answer.Body, largestAnswer))
		if err != nil {
			return nil, err
		}
		if err := googleapi.CheckResponseWithBody(answer, text); err != nil {
			return nil, err
		}
		var have struct {
			Permissions []string `json:"permissions"`
		}
		return have.Permissions, json.Unmarshal(text, &have)
	})
}
