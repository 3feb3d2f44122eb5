package echo

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"time"
)

const (
	// validFor outlives any process: the certificate is made anew at each start.
	validFor = 10 * 365 * 24 * time.Hour
	// skew is how far the clock of a prober on another machine may be behind.
	skew = time.Hour
	// serialBits are what RFC 5280 leaves room for.
	serialBits = 120
	pemType    = "CERTIFICATE"
	// certificateMode: whoever probes may read it; it is no secret.
	certificateMode = 0o644
)

// selfSigned returns a certificate for hosts that nobody but who knows it trusts.
func selfSigned(hosts []string) (tls.Certificate, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return tls.Certificate{}, err
	}
	serial, err := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), serialBits))
	if err != nil {
		return tls.Certificate{}, err
	}
	template := &x509.Certificate{
		SerialNumber: serial, Subject: pkix.Name{CommonName: "egressfleet echo"},
		NotBefore: time.Now().Add(-skew), NotAfter: time.Now().Add(validFor),
		KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	}
	for _, host := range hosts {
		if ip := net.ParseIP(host); ip != nil {
			template.IPAddresses = append(template.IPAddresses, ip)
		} else {
			template.DNSNames = append(template.DNSNames, host)
		}
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		return tls.Certificate{}, err
	}
	leaf, err := x509.ParseCertificate(der)
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key, Leaf: leaf}, err
}

// WriteCertificate writes the certificate, without its key, for a prober in another
// process. A file that is there is replaced in one step.
func (s *Server) WriteCertificate(path string) error {
	text := pem.EncodeToMemory(&pem.Block{Type: pemType, Bytes: s.certificate.Certificate[0]})
	f, err := os.CreateTemp(filepath.Dir(path), ".echo-*")
	if err != nil {
		return err
	}
	defer func() { _ = os.Remove(f.Name()) }() // gone already where all went well
	_, err = f.Write(text)
	if err = errors.Join(err, f.Chmod(certificateMode), f.Close()); err != nil {
		return err
	}
	return os.Rename(f.Name(), path)
}

// ReadRoots reads what WriteCertificate wrote. Read it before each round: a process
// that starts again has another certificate.
func ReadRoots(path string) (*x509.CertPool, error) {
	text, err := os.ReadFile(path) //nolint:gosec // the operator names the file
	if err != nil {
		return nil, fmt.Errorf("certificate of the echo target: %w", err)
	}
	roots := x509.NewCertPool()
	if !roots.AppendCertsFromPEM(text) {
		return nil, fmt.Errorf("certificate of the echo target: %s holds no certificate in PEM form", path)
	}
	return roots, nil
}
