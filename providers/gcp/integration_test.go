//go:build integration

package gcp_test

import (
	"crypto/rand"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/egressfleet/egressfleet/providers"
	"github.com/egressfleet/egressfleet/providers/gcp"
)

// What TestRealProject needs: docs/runbooks/gcp-integration.md.
const (
	envProject = "EGRESSFLEET_GCP_PROJECT"
	envZone    = "EGRESSFLEET_GCP_ZONE"
	envSource  = "EGRESSFLEET_GCP_SOURCE_RANGE" // of this machine, as the instance sees it
	envKey     = "EGRESSFLEET_GCP_CREDENTIALS"  // optional; else application default credentials
)

// needed fails where a variable is not set: a test that is left out proves nothing.
func needed(t *testing.T, name string) string {
	t.Helper()
	value := os.Getenv(name)
	require.NotEmpty(t, value, "%s is not set: docs/runbooks/gcp-integration.md says what it is", name)
	return value
}

// userData installs a proxy that lets one range in.
func userData(source string) []byte {
	return fmt.Appendf(nil, "#cloud-config\npackage_update: true\npackages: [tinyproxy]\nwrite_files:\n"+
		"  - path: /etc/tinyproxy/tinyproxy.conf\n    content: |\n      User tinyproxy\n      Group tinyproxy\n"+
		"      Port 3128\n      Timeout 600\n      MaxClients 100\n      Allow %s\n      ConnectPort 443\n"+
		"runcmd:\n  - [systemctl, enable, tinyproxy]\n  - [systemctl, restart, tinyproxy]\n", source)
}

const (
	boots = 10 * time.Minute
	look  = 5 * time.Second
)

// TestRealProject is the whole life of one instance in a real project: made, made again,
// running, carrying traffic, listed, deleted, deleted again, and nothing left.
func TestRealProject(t *testing.T) {
	cfg := gcp.Config{
		Project: needed(t, envProject), Zones: []string{needed(t, envZone)}, Firewall: "managed",
		SourceRanges: []string{needed(t, envSource)}, CredentialsFile: os.Getenv(envKey),
	}
	run := "it-" + strconv.FormatInt(time.Now().Unix(), 36)
	p, err := gcp.New(t.Context(), "gcp-real", run, cfg)
	require.NoError(t, err)
	defer func() { require.NoError(t, p.Close()) }()
	for _, s := range p.Check(t.Context()) {
		require.True(t, s.Ready, "%s: %s: %s", s.Target, s.Reason, s.Message)
		t.Logf("%s: %v", s.Target, s.Details)
	}
	uid := run + "-" + strings.ToLower(rand.Text())
	req := providers.CreateRequest{
		Name: providers.NameFromUID(uid), UID: uid, Attempt: 1, Installation: run, Owner: "default/real",
		SpecMark: "{}", Port: 3128, Placement: providers.Placement{Zone: cfg.Zones[0]},
		CloudInit: userData(cfg.SourceRanges[0]),
	}
	id, err := p.Create(t.Context(), req)
	defer func() { remove(t, p, id) }()
	require.NoError(t, err)
	again, err := p.Create(t.Context(), req)
	require.NoError(t, err)
	require.Equal(t, id, again)
	found := untilRunning(t, p, id)
	require.Equal(t, uid, found.UID)
	carries(t, found.IP)
	all, err := p.ListByTag(t.Context())
	require.NoError(t, err)
	require.Len(t, all, 1)
	require.Equal(t, id, all[0].ID)
	remove(t, p, id)
	inventory, err := p.Inventory(t.Context())
	require.NoError(t, err)
	fmt.Printf("gcp-real: created=1 carried=1 leaked_instances=%d leaked_disks=%d\n",
		len(inventory.Instances), len(inventory.Leftovers))
	require.Empty(t, inventory.Instances)
}

func untilRunning(t *testing.T, p *gcp.Provider, id string) (found providers.Instance) {
	t.Helper()
	require.Eventually(t, func() bool {
		i, err := p.Get(t.Context(), id)
		require.False(t, providers.IsCreateFailed(err), "%v", err)
		if err == nil {
			found = *i
		}
		return err == nil && found.State == providers.StateRunning
	}, boots, look)
	return found
}

// carries waits until the proxy of the guest carries a request.
func carries(t *testing.T, ip string) {
	t.Helper()
	proxy := &url.URL{Scheme: "http", Host: ip + ":3128"}
	client := &http.Client{Transport: &http.Transport{Proxy: http.ProxyURL(proxy)}, Timeout: look}
	require.Eventually(t, func() bool {
		answer, err := client.Get("https://www.gstatic.com/generate_204")
		if err != nil {
			return false
		}
		defer func() { _ = answer.Body.Close() }()
		return answer.StatusCode == http.StatusNoContent
	}, boots, look, "cloud-init of the image has to install the proxy, and the rule to let this machine in")
}

// remove deletes until Get says NotFound, which it says once the disk is gone, too.
func remove(t *testing.T, p *gcp.Provider, id string) {
	t.Helper()
	if id == "" {
		return
	}
	require.NoError(t, p.Delete(t.Context(), id))
	require.Eventually(t, func() bool {
		_, err := p.Get(t.Context(), id)
		if providers.ClassOf(err) == providers.ErrNotFound {
			return true
		}
		_ = p.Delete(t.Context(), id) // sends nothing while one runs
		return false
	}, boots, look)
	require.NoError(t, p.Delete(t.Context(), id))
}
