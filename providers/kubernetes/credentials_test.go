package kubernetes_test

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/egressfleet/egressfleet/providers"
	"github.com/egressfleet/egressfleet/providers/kubernetes"
	"github.com/egressfleet/egressfleet/testsuite/kubeapi"
)

// inCluster gives a provider a service account in the place of a kubeconfig.
func inCluster(t *testing.T, l *lab) *kubernetes.Provider {
	t.Helper()
	dir := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(dir, "ca.crt"), l.server.Authority(), 0o600))
	l.cfg.Kubeconfig, l.cfg.Server, l.cfg.ServiceAccountDir = "", l.server.URL, dir
	return l.open(t, installation)
}

func TestInTheClusterTheTokenIsReadAtEveryCall(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	p := inCluster(t, l)
	token := filepath.Join(l.cfg.ServiceAccountDir, "token")
	require.Equal(t, []string{token, filepath.Join(l.cfg.ServiceAccountDir, "ca.crt")}, p.CredentialFiles())
	_, err := p.ListByTag(t.Context())
	require.ErrorIs(t, err, providers.ErrTransient, "no token yet")
	require.NoError(t, os.WriteFile(token, []byte(kubeapi.Token+"\n"), 0o600))
	_, err = p.ListByTag(t.Context())
	require.NoError(t, err)
	next := l.server.SwapToken()
	_, err = p.ListByTag(t.Context())
	require.ErrorIs(t, err, providers.ErrPermanent, "the token has expired")
	require.NoError(t, os.WriteFile(token, []byte(next), 0o600))
	_, err = p.ListByTag(t.Context())
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(token, nil, 0o600))
	_, err = p.ListByTag(t.Context())
	require.ErrorIs(t, err, providers.ErrPermanent, "there, and it holds nothing")
}

// The token is swapped while a call is under way: it is made again with the new one.
func TestATokenThatIsSwappedMeanwhileIsReadAgain(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	id, err := l.Create(t.Context(), request("u"))
	require.NoError(t, err)
	next := l.server.SwapToken()
	l.server.Unauthorized(func() { l.server.WriteKubeconfig(t, l.kubeconfig, next) })
	_, err = l.Get(t.Context(), id)
	require.NoError(t, err)
}

func TestFilesThatAKubeconfigNamesAreRead(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	dir := filepath.Dir(l.kubeconfig)
	cfg := l.server.Kubeconfig("")
	cfg.Clusters["here"].CertificateAuthorityData = nil
	cfg.Clusters["here"].CertificateAuthority = "ca.crt"
	cfg.AuthInfos["worker"].TokenFile = filepath.Join(dir, "token")
	require.NoError(t, clientcmd.WriteToFile(*cfg, l.kubeconfig))
	_, err := l.ListByTag(t.Context())
	require.ErrorIs(t, err, providers.ErrTransient)
	require.NoError(t, os.WriteFile(filepath.Join(dir, "ca.crt"), l.server.Authority(), 0o600))
	require.NoError(t, os.WriteFile(filepath.Join(dir, "token"), []byte(kubeapi.Token), 0o600))
	_, err = l.ListByTag(t.Context())
	require.NoError(t, err)
}

func TestACertificateOfNobodyIsPermanent(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	cfg := l.server.Kubeconfig(kubeapi.Token)
	cfg.Clusters["here"].CertificateAuthorityData = nil
	require.NoError(t, clientcmd.WriteToFile(*cfg, l.kubeconfig))
	_, err := l.ListByTag(t.Context())
	require.ErrorIs(t, err, providers.ErrPermanent)
	require.ErrorContains(t, err, "of an authority that the kubeconfig")
	status := l.check(t)[0]
	require.Equal(t, providers.ReasonUnreachable, status.Reason)
	require.Contains(t, status.Message, "authority")

	l.cfg.InsecureSkipTLSVerify = true
	_, err = l.open(t, installation).ListByTag(t.Context())
	require.NoError(t, err)
}

func TestAContextOfTheKubeconfigIsChosen(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	cfg := l.server.Kubeconfig(kubeapi.Token)
	cfg.CurrentContext = "absent"
	require.NoError(t, clientcmd.WriteToFile(*cfg, l.kubeconfig))
	_, err := l.ListByTag(t.Context())
	require.ErrorIs(t, err, providers.ErrPermanent)
	l.cfg.Context = "here"
	_, err = l.open(t, installation).ListByTag(t.Context())
	require.NoError(t, err)
}

// The environment would send the token through whatever it names. It is never asked
// about loopback, so the server is at an address of nobody (TEST-NET-1).
func TestTheEnvironmentsProxyIsNotAsked(t *testing.T) {
	t.Setenv("HTTPS_PROXY", "http://127.0.0.1:1")
	l := newLab(t)
	l.cfg.ProxyURL = "http://127.0.0.1:1"
	_, err := l.open(t, installation).ListByTag(t.Context())
	require.ErrorIs(t, err, providers.ErrTransient)
	require.ErrorContains(t, err, "proxyconnect", "the configuration is")

	cfg := l.server.Kubeconfig(kubeapi.Token)
	cfg.Clusters["here"].Server = "https://192.0.2.1"
	require.NoError(t, clientcmd.WriteToFile(*cfg, l.kubeconfig))
	l.cfg.ProxyURL = ""
	p := l.open(t, installation)
	kubernetes.Impatient(p, 100*time.Millisecond)
	_, err = p.ListByTag(t.Context())
	require.ErrorIs(t, err, providers.ErrTransient)
	require.NotContains(t, err.Error(), "proxyconnect")
}

func TestAClosedProviderLetsGoOfItsConnections(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	_, err := l.ListByTag(t.Context())
	require.NoError(t, err)
	open := l.server.Connections()
	require.NotZero(t, open())
	require.NoError(t, l.Provider.(*kubernetes.Provider).Close())
	require.Eventually(t, func() bool { return open() == 0 }, soon, tick)
}
