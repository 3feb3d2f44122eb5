package kubernetes_test

import (
	"bytes"
	"encoding/json"
	"log/slog"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/egressfleet/egressfleet/providers"
	"github.com/egressfleet/egressfleet/providers/kubernetes"
)

func TestConfigurationsThatAreRefused(t *testing.T) {
	t.Parallel()
	small := map[string]string{"cpu": "50m", "memory": "64Mi"}
	machine := func(m kubernetes.MachineType) func(*kubernetes.Config) {
		return func(c *kubernetes.Config) { c.MachineTypes = map[string]kubernetes.MachineType{"m": m} }
	}
	for name, c := range map[string]struct {
		change func(*kubernetes.Config)
		want   string
	}{
		"no namespace":             {func(c *kubernetes.Config) { c.Namespace = "" }, `namespace: ""`},
		"a namespace with a slash": {func(c *kubernetes.Config) { c.Namespace = "a/b" }, `namespace: "a/b"`},
		"a namespace in capitals":  {func(c *kubernetes.Config) { c.Namespace = "Egress" }, `namespace: "Egress"`},
		"a former one that is none": {
			func(c *kubernetes.Config) { c.FormerNamespaces = []string{"a", ""} }, `formerNamespaces[1]: ""`,
		},
		"an image with a space": {func(c *kubernetes.Config) { c.Image = "a b" }, `image: "a b"`},
		"nobody may use it":     {func(c *kubernetes.Config) { c.ClusterRanges = nil }, "allowedClients: []"},
		"everybody may use it": {
			func(c *kubernetes.Config) { c.AllowedClients = []string{"0.0.0.0/0"} },
			`allowedClients[0]: "0.0.0.0/0" is wider than /8`,
		},
		"half of everybody": {
			func(c *kubernetes.Config) { c.Probers = []string{"10.0.0.0/8", "128.0.0.0/1"} },
			`probers[1]: "128.0.0.0/1" is wider`,
		},
		"everybody of IPv6": {
			func(c *kubernetes.Config) { c.ClusterRanges = []string{"2000::/3"} },
			`clusterRanges[0]: "2000::/3" is wider than /16`,
		},
		"an address": {
			func(c *kubernetes.Config) { c.AllowedClients = []string{"10.0.0.1"} }, `allowedClients[0]: "10.0.0.1" is no CIDR`,
		},
		"bits beyond the length": {
			func(c *kubernetes.Config) { c.DeniedTargets = []string{"10.0.0.1/8"} }, `deniedTargets[0]: "10.0.0.1/8" has bits`,
		},
		"another policy": {func(c *kubernetes.Config) { c.NetworkPolicy = "strict" }, `networkPolicy: "strict"`},
		"no memory": {
			machine(kubernetes.MachineType{Requests: map[string]string{"cpu": "1"}, Limits: small}),
			"machineTypes.m.requests.memory",
		},
		"no limit": {machine(kubernetes.MachineType{Requests: small}), "machineTypes.m.limits.cpu"},
		"a quantity that is none": {
			machine(kubernetes.MachineType{Requests: map[string]string{"cpu": "much", "memory": "1Gi"}, Limits: small}),
			`machineTypes.m.requests.cpu: "much"`,
		},
		"a request above its limit": {
			machine(kubernetes.MachineType{Requests: map[string]string{"cpu": "1", "memory": "1Gi"}, Limits: small}),
			`machineTypes.m.requests.`,
		},
		"a type in a namespace that is none": {
			machine(kubernetes.MachineType{Namespace: "A", Requests: small, Limits: small}), `machineTypes.m.namespace: "A"`,
		},
		"less than nothing a second": {func(c *kubernetes.Config) { c.QPS = -1 }, "qps: -1"},
		"less than nothing at once":  {func(c *kubernetes.Config) { c.Burst = -1 }, "burst: -1"},
		"a context of nothing":       {func(c *kubernetes.Config) { c.Context = "x" }, `context: "x"`},
		"a server in plain text":     {func(c *kubernetes.Config) { c.Server = "http://a" }, `server: "http://a"`},
		"a server twice": {
			func(c *kubernetes.Config) { c.Server, c.Kubeconfig = "https://a", "/x" }, `server: "https://a"`,
		},
		"a service account beside a kubeconfig": {
			func(c *kubernetes.Config) { c.ServiceAccountDir, c.Kubeconfig = "/sa", "/x" }, `serviceAccountDir: "/sa"`,
		},
		"a proxy of another kind": {
			func(c *kubernetes.Config) { c.ProxyURL = "ftp://a" }, `proxyURL: the scheme "ftp"`,
		},
		"a proxy without a host": {func(c *kubernetes.Config) { c.ProxyURL = "http://" }, "proxyURL: "},
		"a template with a strange key": {
			template(`{"spec": {"containerz": []}}`), `podTemplate: unknown field "spec.containerz"`,
		},
		"a template with a name": {
			template(`{"metadata": {"name": "x"}}`), `podTemplate: unknown field "metadata.name"`,
		},
		"a template with an owner": {template(`{"metadata": {"ownerReferences": []}}`), "podTemplate: unknown field"},
		"a template with a mark": {
			template(`{"metadata": {"labels": {"proxy-operator-uid": "x"}}}`), `podTemplate: metadata: "proxy-operator-uid"`,
		},
		"a template with its own squid.conf": {
			template(`{"metadata": {"annotations": {"proxy-operator-squid.conf": "x"}}}`), "podTemplate: metadata:",
		},
		"a template that is a list": {template(`[]`), "podTemplate: "},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			cfg := kubernetes.Config{Namespace: namespace, ClusterRanges: []string{"10.244.0.0/16"}}
			c.change(&cfg)
			_, err := kubernetes.New(t.Context(), providerName, installation, cfg)
			require.ErrorContains(t, err, c.want)
		})
	}
}

func TestNamesAreLabels(t *testing.T) {
	t.Parallel()
	cfg := kubernetes.Config{Namespace: namespace, ClusterRanges: []string{"10.244.0.0/16"}}
	_, err := kubernetes.New(t.Context(), "A", installation, cfg)
	require.ErrorContains(t, err, `name: "A"`)
	_, err = kubernetes.New(t.Context(), providerName, "a.b", cfg)
	require.ErrorContains(t, err, `installation: "a.b"`)
}

// A proxy's password is in no error, also not in one about the proxy.
func TestAProxyURLIsNotRepeated(t *testing.T) {
	t.Parallel()
	for _, value := range []string{"ftp://u:hunter22@a", "http://u:hunter22@", "http://u:hunter22@a\x7f"} {
		cfg := kubernetes.Config{Namespace: namespace, ClusterRanges: []string{"10.244.0.0/16"}, ProxyURL: value}
		_, err := kubernetes.New(t.Context(), providerName, installation, cfg)
		require.ErrorContains(t, err, "proxyURL")
		require.NotContains(t, err.Error(), "hunter22")
	}
}

func TestKubeconfigsThatAreRefused(t *testing.T) {
	t.Parallel()
	const head = "apiVersion: v1\nkind: Config\ncurrent-context: x\n" +
		"contexts: [{name: x, context: {cluster: c, user: u}}]\n"
	const cluster = "clusters: [{name: c, cluster: {server: https://127.0.0.1:1}}]\n"
	const user = "users: [{name: u, user: {token: hunter22}}]\n"
	for name, c := range map[string]struct{ text, want string }{
		"no kubeconfig":   {"hunter22: [", "makes no sense"},
		"nothing":         {"", "makes no sense"},
		"no such context": {"apiVersion: v1\nkind: Config\ncurrent-context: absent\n", `no context "absent"`},
		"a program": {
			head + cluster + "users: [{name: u, user: {exec: {command: aws, apiVersion: client.authentication.k8s.io/v1}}}]\n",
			"from a program",
		},
		"plain text": {
			head + "clusters: [{name: c, cluster: {server: 'http://127.0.0.1:1'}}]\n" + user, "is not an https URL",
		},
		"a check turned off": {
			head + "clusters: [{name: c, cluster: {server: 'https://127.0.0.1:1', insecure-skip-tls-verify: true}}]\n" + user,
			"insecureSkipTLSVerify",
		},
		"a broken certificate": {
			head + cluster +
				"users: [{name: u, user: {client-certificate-data: aHVudGVyMjI=, client-key-data: aHVudGVyMjI=}}]\n",
			"make no sense",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			path := filepath.Join(t.TempDir(), "kubeconfig")
			require.NoError(t, os.WriteFile(path, []byte(c.text), 0o600))
			cfg := kubernetes.Config{Namespace: namespace, ClusterRanges: []string{"10.244.0.0/16"}, Kubeconfig: path}
			_, err := kubernetes.New(t.Context(), providerName, installation, cfg)
			require.ErrorContains(t, err, c.want)
			require.NotContains(t, err.Error(), "hunter22")
		})
	}
}

func TestAConstructorDoesNotWaitForCredentials(t *testing.T) {
	t.Parallel()
	cfg := kubernetes.Config{
		Namespace: namespace, ClusterRanges: []string{"10.244.0.0/16"}, Kubeconfig: filepath.Join(t.TempDir(), "later"),
	}
	p, err := kubernetes.New(t.Context(), providerName, installation, cfg)
	require.NoError(t, err)
	require.Equal(t, []string{cfg.Kubeconfig}, p.CredentialFiles())
	_, err = p.Get(t.Context(), namespace+"/x")
	require.ErrorIs(t, err, providers.ErrTransient)
	require.ErrorContains(t, err, cfg.Kubeconfig)
}

func TestInsecureIsWarnedAbout(t *testing.T) {
	t.Parallel()
	var log bytes.Buffer
	ctx := providers.WithLogger(t.Context(), slog.New(slog.NewJSONHandler(&log, nil)))
	cfg := kubernetes.Config{Namespace: namespace, ClusterRanges: []string{"10.244.0.0/16"}}
	_, err := kubernetes.New(ctx, providerName, installation, cfg)
	require.NoError(t, err)
	require.Empty(t, log.String())
	cfg.InsecureSkipTLSVerify = true
	_, err = kubernetes.New(ctx, providerName, installation, cfg)
	require.NoError(t, err)
	var line map[string]any
	require.NoError(t, json.Unmarshal(log.Bytes(), &line))
	require.Equal(t, "WARN", line["level"])
	require.Equal(t, "insecureSkipTLSVerify", line["key"])
}
