// Package certificates makes what tests of TLS prove themselves with.
package certificates

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"math/big"
	"net"
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

const lifetime = time.Hour

// Write makes a certificate for 127.0.0.1, which a server and a client may use, writes
// it and its key as PEM, and returns who trusts it.
func Write(t testing.TB, certificateFile, keyFile string) *x509.CertPool {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(t, err)
	template := &x509.Certificate{
		SerialNumber: big.NewInt(time.Now().UnixNano()), NotAfter: time.Now().Add(lifetime),
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, IsCA: true, BasicConstraintsValid: true, //nolint:mnd // loopback
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	require.NoError(t, err)
	raw, err := x509.MarshalPKCS8PrivateKey(key)
	require.NoError(t, err)
	chain := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
	write(t, certificateFile, chain)
	write(t, keyFile, pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: raw}))
	roots := x509.NewCertPool()
	require.True(t, roots.AppendCertsFromPEM(chain))
	return roots
}

func write(t testing.TB, file string, text []byte) {
	t.Helper()
	const onlyUs = 0o600
	require.NoError(t, os.WriteFile(file, text, onlyUs))
}
