//go:build linux

package kubelab

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"time"
)

// life is how long certificates hold: longer than any run.
const life = 24 * time.Hour

// authority signs the certificates of one cluster.
type authority struct {
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
	pem  []byte
}

// subject is whom a certificate is about. Hosts make it a server's, too.
type subject struct {
	name, group string
	hosts       []string
}

// pair is a certificate with its key, PEM.
type pair struct{ cert, key []byte }

func newAuthority() (*authority, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, err
	}
	a := &authority{key: key}
	template := about(subject{name: "kubelab"})
	template.IsCA, template.BasicConstraintsValid, template.KeyUsage = true, true, x509.KeyUsageCertSign
	template.ExtKeyUsage = nil // it would bound the certificates that it signs
	a.cert = template
	if a.pem, err = a.sign(template, key.Public()); err != nil {
		return nil, err
	}
	block, _ := pem.Decode(a.pem)
	a.cert, err = x509.ParseCertificate(block.Bytes)
	return a, err
}

func (a *authority) issue(s subject) (p pair, err error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return p, err
	}
	if p.key, err = private(key); err != nil {
		return p, err
	}
	p.cert, err = a.sign(about(s), key.Public())
	return p, err
}

func (a *authority) sign(template *x509.Certificate, key crypto.PublicKey) ([]byte, error) {
	der, err := x509.CreateCertificate(rand.Reader, template, a.cert, key, a.key)
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), err
}

func about(s subject) *x509.Certificate {
	serial, _ := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 120)) // the reader never fails
	c := &x509.Certificate{
		SerialNumber: serial, Subject: pkix.Name{CommonName: s.name},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(life),
		KeyUsage:    x509.KeyUsageDigitalSignature,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth},
	}
	if s.group != "" {
		c.Subject.Organization = []string{s.group}
	}
	for _, host := range s.hosts {
		c.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth, x509.ExtKeyUsageServerAuth}
		if ip := net.ParseIP(host); ip != nil {
			c.IPAddresses = append(c.IPAddresses, ip)
		} else {
			c.DNSNames = append(c.DNSNames, host)
		}
	}
	return c
}

func private(key *ecdsa.PrivateKey) ([]byte, error) {
	der, err := x509.MarshalPKCS8PrivateKey(key)
	return pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der}), err
}

// tokenKeys are those with which tokens of service accounts are signed and checked.
func tokenKeys() (p pair, err error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return p, err
	}
	public, err := x509.MarshalPKIXPublicKey(key.Public())
	if err != nil {
		return p, err
	}
	p.cert = pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: public})
	p.key, err = private(key)
	return p, err
}

// write puts a pair into dir as name.crt and name.key.
func (p pair) write(dir, name string) error {
	return errors.Join(
		os.WriteFile(filepath.Join(dir, name+".crt"), p.cert, 0o600),
		os.WriteFile(filepath.Join(dir, name+".key"), p.key, 0o600))
}
