//go:build linux

package kubelab

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/client-go/tools/clientcmd/api"
)

// auditPolicy keeps who asked for what, and nothing of what was said.
const auditPolicy = `apiVersion: audit.k8s.io/v1
kind: Policy
omitStages: [RequestReceived]
rules:
- level: None
  userGroups: ["system:masters", "system:nodes", "system:serviceaccounts"]
- level: None
  users: ["system:kube-controller-manager", "system:kube-scheduler", "system:anonymous"]
- level: Metadata
`

// credentials makes the keys, the tokens and the files of the cluster, and Admin.
func (c *Cluster) credentials() (err error) {
	if err := os.MkdirAll(c.pki, 0o700); err != nil {
		return err
	}
	if c.ca, err = newAuthority(); err != nil {
		return err
	}
	accounts, err := tokenKeys()
	if err != nil {
		return err
	}
	server, err := c.ca.issue(subject{name: "kube-apiserver", hosts: []string{c.opts.Address, "127.0.0.1", "localhost"}})
	if err != nil {
		return err
	}
	admin, err := c.ca.issue(subject{name: "admin", group: "system:masters"})
	if err != nil {
		return err
	}
	if c.Admin, err = kubernetes.NewForConfig(c.adminConfig(admin)); err != nil {
		return err
	}
	kwok, err := c.ca.issue(subject{name: kwokUser, group: "system:masters"})
	if err != nil {
		return err
	}
	return errors.Join(
		os.WriteFile(filepath.Join(c.pki, "ca.crt"), c.ca.pem, 0o600),
		os.WriteFile(filepath.Join(c.pki, "audit.yaml"), []byte(auditPolicy), 0o600),
		accounts.write(c.pki, "accounts"), server.write(c.pki, "server"), admin.write(c.pki, "admin"),
		WriteKubeconfig(c.AdminFile(), c.adminConfig(admin)),
		WriteKubeconfig(filepath.Join(c.pki, kwokUser+".kubeconfig"), c.adminConfig(kwok)),
		c.partCredentials("kube-controller-manager"), c.partCredentials("kube-scheduler"), c.userTokens())
}

// partCredentials writes the kubeconfig of a part of the cluster.
func (c *Cluster) partCredentials(name string) error {
	p, err := c.ca.issue(subject{name: "system:" + name})
	if err != nil {
		return err
	}
	return WriteKubeconfig(filepath.Join(c.pki, name+".kubeconfig"), c.adminConfig(p))
}

func (c *Cluster) userTokens() error {
	var lines strings.Builder
	for _, user := range c.opts.Users {
		c.tokens[user] = rand.Text()
		fmt.Fprintf(&lines, "%s,%s,%s\n", c.tokens[user], user, user)
	}
	if lines.Len() == 0 {
		lines.WriteString(rand.Text() + ",nobody,nobody\n") // an empty file is refused
	}
	return os.WriteFile(filepath.Join(c.pki, "tokens.csv"), []byte(lines.String()), 0o600)
}

// Config returns the configuration of one of the users, with its token.
func (c *Cluster) Config(user string) *rest.Config {
	return &rest.Config{
		Host: c.server, BearerToken: c.tokens[user], QPS: -1,
		TLSClientConfig: rest.TLSClientConfig{CAData: c.ca.pem},
	}
}

// AdminFile is the kubeconfig of Admin, for programs and other clients.
func (c *Cluster) AdminFile() string { return filepath.Join(c.pki, "admin.kubeconfig") }

// WriteKubeconfig writes a configuration as a file for programs, with one context
// "kubelab". It is for its owner only: the credentials are in it.
func WriteKubeconfig(path string, cfg *rest.Config) error {
	const name = "kubelab"
	file := api.NewConfig()
	file.Clusters[name] = &api.Cluster{Server: cfg.Host, CertificateAuthorityData: cfg.CAData}
	file.AuthInfos[name] = &api.AuthInfo{
		Token: cfg.BearerToken, TokenFile: cfg.BearerTokenFile,
		ClientCertificateData: cfg.CertData, ClientKeyData: cfg.KeyData,
	}
	file.Contexts[name] = &api.Context{Cluster: name, AuthInfo: name}
	file.CurrentContext = name
	return clientcmd.WriteToFile(*file, path)
}

// Namespace makes a namespace in which Pods may be made at once: its service account is
// there. Labels may be nil.
func (c *Cluster) Namespace(ctx context.Context, name string, labels map[string]string) error {
	_, err := c.Admin.CoreV1().Namespaces().Create(ctx,
		&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: labels}}, metav1.CreateOptions{})
	if err != nil {
		return err
	}
	return c.api.until(ctx, func(ctx context.Context) error {
		_, err := c.Admin.CoreV1().ServiceAccounts(name).Get(ctx, "default", metav1.GetOptions{})
		return err
	})
}
