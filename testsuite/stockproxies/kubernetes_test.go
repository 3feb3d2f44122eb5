//go:build tools

package stockproxies

import (
	"net"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/egressfleet/egressfleet/activities/probe"
	v1 "github.com/egressfleet/egressfleet/api/v1"
	"github.com/egressfleet/egressfleet/providers"
	"github.com/egressfleet/egressfleet/providers/kubernetes"
	"github.com/egressfleet/egressfleet/testsuite/kubeapi"
)

// podSquid is the configuration that a Pod of the provider kubernetes has, whose one
// client is the address of this suite's clients.
func podSquid(t *testing.T) string {
	t.Helper()
	const installation = "test"
	server := kubeapi.New(t, kubeapi.Rules(t, "../../deploy/kubernetes/rbac.yaml", installation))
	path := filepath.Join(t.TempDir(), "kubeconfig")
	server.WriteKubeconfig(t, path, kubeapi.Token)
	p, err := kubernetes.New(t.Context(), "kubernetes", installation, kubernetes.Config{
		Kubeconfig: path, Namespace: "egress", AllowedClients: []string{client + "/32"},
	})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, p.Close()) })
	_, err = p.Create(t.Context(), providers.CreateRequest{
		Name: providers.NameFromUID("u"), UID: "u", Installation: installation, Port: 3128,
	})
	require.NoError(t, err)
	text := server.Pods(t)[0].Annotations["proxy-operator-squid.conf"]
	require.Contains(t, text, "\nhttp_access deny all\n")
	return text
}

// startPodSquid runs it as the Pod does, on an address of its own.
func startPodSquid(t *testing.T, conf string) probe.Proxy {
	t.Helper()
	dir, at := folder(t), place(t)
	require.Contains(t, conf, "http_port 3128\n")
	file := write(t, filepath.Join(dir, "squid.conf"), strings.Replace(conf, "http_port 3128", "http_port "+at, 1))
	host, port, err := net.SplitHostPort(at)
	require.NoError(t, err)
	// Beyond what a Pod has: memory of its own among the other squids of this machine.
	service := "pod" + strings.ReplaceAll(host, ".", "x") + "x" + port
	return start(t, at, binary(t, "squid"), "-N", "-d", "1", "-n", service, "-f", file)
}

func TestSquidTakesTheConfigurationOfAPodAsItIs(t *testing.T) {
	t.Parallel()
	file := write(t, filepath.Join(folder(t), "squid.conf"), podSquid(t))
	said, err := exec.Command(binary(t, "squid"), "-k", "parse", "-f", file).CombinedOutput()
	require.NoError(t, err, string(said))
	// Via is left out on purpose: it tells targets that they see a proxy.
	text := strings.Replace(string(said), "WARNING: HTTP requires the use of Via", "", 1)
	for _, word := range []string{"WARNING", "ERROR", "FATAL", "Bungled"} {
		require.NotContains(t, text, word)
	}
}

func TestThePodsSquidServesItsClientsAndNobodyElse(t *testing.T) {
	t.Parallel()
	conf := podSquid(t)
	good, other := target(t, address(), 443), target(t, address(), 8443)
	closed := startPodSquid(t, conf)
	verdict(t, v1.ReasonRefused, from(client).Probe(t.Context(), good, closed)) // loopback is no target

	const loopback = "acl denied_targets dst 127.0.0.0/8\n"
	require.Contains(t, conf, loopback)
	proxy := startPodSquid(t, strings.Replace(conf, loopback, "", 1)) // where the targets of this suite are
	verdict(t, v1.ReasonHealthy, from(client).Probe(t.Context(), good, proxy))
	verdict(t, v1.ReasonRefused, from(stranger).Probe(t.Context(), good, proxy))
	verdict(t, v1.ReasonRefused, from(client).Probe(t.Context(), other, proxy))
}
