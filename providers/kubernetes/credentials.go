package kubernetes

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"strings"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
)

// access is where the address and the credentials of the API server are.
type access struct {
	kubeconfig, context string // a file and one of its contexts
	server, dir         string // or, in the cluster: a URL, the folder of the service account
	proxy               *url.URL
	insecure            bool
}

// material is what was read of an access: a configuration that refers to no file any
// more, and a sum by which a change is seen.
type material struct {
	rest *rest.Config
	sum  [sha256.Size]byte
}

// credentialLimit bounds each file; a kubeconfig with certificates has some kilobytes.
const credentialLimit = 1 << 20

// files are those that the configuration itself names.
func (a access) files() []string {
	if a.kubeconfig != "" {
		return []string{a.kubeconfig}
	}
	return []string{a.tokenFile(), a.authorityFile()}
}

func (a access) tokenFile() string     { return filepath.Join(a.dir, "token") }
func (a access) authorityFile() string { return filepath.Join(a.dir, "ca.crt") }

// read reads all credentials. A missing file is Transient, and content that makes no
// sense is Permanent; neither error repeats any of it.
func (a access) read() (material, error) {
	r := &reader{sum: sha256.New()}
	var cfg *rest.Config
	var err error
	if a.kubeconfig != "" {
		cfg, err = a.readKubeconfig(r)
	} else {
		cfg, err = a.readServiceAccount(r)
	}
	if err != nil {
		return material{}, err
	}
	if a.proxy != nil {
		cfg.Proxy = fixedProxy(a.proxy)
	}
	if err := a.checkTrust(cfg); err != nil {
		return material{}, err
	}
	return material{rest: cfg, sum: [sha256.Size]byte(r.sum.Sum(nil))}, nil
}

// checkTrust lets a switch of this provider alone turn a check off, since it is that
// one which is logged.
func (a access) checkTrust(cfg *rest.Config) error {
	if err := checkServer("server", cfg.Host); err != nil {
		return permanent("%w", err)
	}
	if cfg.Insecure && !a.insecure {
		return permanent("kubeconfig: %q has insecure-skip-tls-verify, which needs insecureSkipTLSVerify here, too",
			a.kubeconfig)
	}
	if a.insecure {
		cfg.Insecure, cfg.CAData = true, nil
	}
	if _, err := rest.TLSConfigFor(cfg); err != nil {
		return permanent("the certificates or the key of the API server's access make no sense")
	}
	return nil
}

func (a access) readServiceAccount(r *reader) (*rest.Config, error) {
	token, err := r.file(a.tokenFile())
	if err != nil {
		return nil, err
	}
	authority, err := r.file(a.authorityFile())
	if err != nil {
		return nil, err
	}
	cfg := &rest.Config{Host: a.server, BearerToken: strings.TrimSpace(string(token))}
	cfg.CAData = authority
	if cfg.BearerToken == "" {
		return nil, permanent("%q holds no token", a.tokenFile())
	}
	return cfg, nil
}

func (a access) readKubeconfig(r *reader) (*rest.Config, error) {
	raw, err := r.file(a.kubeconfig)
	if err != nil {
		return nil, err
	}
	all, err := clientcmd.Load(raw)
	if err != nil || len(raw) == 0 {
		return nil, permanent("kubeconfig: %q makes no sense as a kubeconfig", a.kubeconfig)
	}
	name := orElse(a.context, all.CurrentContext)
	current, cluster, user := pick(all, name)
	if current == nil || cluster == nil || user == nil {
		return nil, permanent("kubeconfig: %q has no context %q with a cluster and a user", a.kubeconfig, name)
	}
	if user.Exec != nil || user.AuthProvider != nil {
		return nil, permanent("kubeconfig: %q: the user %q gets its token from a program, which is not run: "+
			"give it a token, a tokenFile or a certificate", a.kubeconfig, current.AuthInfo)
	}
	if err := a.inline(r, cluster, user); err != nil {
		return nil, err
	}
	cfg, err := clientcmd.NewNonInteractiveClientConfig(*all, name, &clientcmd.ConfigOverrides{}, nil).ClientConfig()
	if err != nil {
		return nil, permanent("kubeconfig: %q: the context %q cannot be used", a.kubeconfig, name)
	}
	return cfg, nil
}

func pick(
	all *clientcmdapi.Config, name string,
) (*clientcmdapi.Context, *clientcmdapi.Cluster, *clientcmdapi.AuthInfo) {
	current := all.Contexts[name]
	if current == nil {
		return nil, nil, nil
	}
	return current, all.Clusters[current.Cluster], all.AuthInfos[current.AuthInfo]
}

// inline puts the content of files in their place, so that what is kept refers to none.
func (a access) inline(r *reader, cluster *clientcmdapi.Cluster, user *clientcmdapi.AuthInfo) error {
	var token []byte
	for _, f := range []struct {
		path *string
		data *[]byte
	}{
		{&cluster.CertificateAuthority, &cluster.CertificateAuthorityData},
		{&user.ClientCertificate, &user.ClientCertificateData},
		{&user.ClientKey, &user.ClientKeyData},
		{&user.TokenFile, &token},
	} {
		if *f.path == "" {
			continue
		}
		content, err := r.file(a.beside(*f.path))
		if err != nil {
			return err
		}
		*f.path, *f.data = "", content
	}
	if token != nil {
		user.Token = strings.TrimSpace(string(token))
	}
	return nil
}

// beside resolves a path as kubectl does: relative ones are of the kubeconfig's folder.
func (a access) beside(path string) string {
	if filepath.IsAbs(path) {
		return path
	}
	return filepath.Join(filepath.Dir(a.kubeconfig), path)
}

// reader reads files and sums them up.
type reader struct {
	sum interface {
		io.Writer
		Sum([]byte) []byte
	}
}

func (r *reader) file(path string) ([]byte, error) {
	f, err := os.Open(path) //nolint:gosec // the path is an administrator's
	if errors.Is(err, fs.ErrPermission) {
		return nil, permanent("a credential: %w", err)
	}
	if err != nil {
		return nil, transient("a credential: %w", err)
	}
	defer func() { _ = f.Close() }()
	content, err := io.ReadAll(io.LimitReader(f, credentialLimit+1))
	if err != nil {
		return nil, transient("a credential: %w", err)
	}
	if len(content) > credentialLimit {
		return nil, permanent("a credential: %q has more than %d bytes", path, credentialLimit)
	}
	_, _ = fmt.Fprintf(r.sum, "%s %d ", path, len(content))
	_, _ = r.sum.Write(content)
	return content, nil
}
