package kubeapi

import (
	"testing"

	"github.com/stretchr/testify/require"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
)

// Token is the first one that a server takes.
const Token = "first-token"

// Kubeconfig returns one for the server, with the user's token.
func (s *Server) Kubeconfig(token string) *clientcmdapi.Config {
	cfg := clientcmdapi.NewConfig()
	cfg.Clusters["here"] = &clientcmdapi.Cluster{Server: s.URL, CertificateAuthorityData: s.Authority()}
	cfg.AuthInfos["worker"] = &clientcmdapi.AuthInfo{Token: token}
	cfg.Contexts["here"] = &clientcmdapi.Context{Cluster: "here", AuthInfo: "worker"}
	cfg.CurrentContext = "here"
	return cfg
}

// WriteKubeconfig writes one for the server, with the user's token.
func (s *Server) WriteKubeconfig(t testing.TB, path, token string) {
	t.Helper()
	require.NoError(t, clientcmd.WriteToFile(*s.Kubeconfig(token), path))
}
