package main

import (
	"crypto/tls"
	"log/slog"

	"github.com/egressfleet/egressfleet/internal/config"
	"github.com/egressfleet/egressfleet/internal/keypair"
)

// serverTLS is what the API proves itself with: a new certificate counts from the next
// handshake.
func serverTLS(files config.TLS, log *slog.Logger) (*tls.Config, error) {
	pair, err := keypair.Open(keypair.Files{
		Certificate: files.Certificate, CertificateSetting: "api.tls.certificate",
		Key: files.Key, KeySetting: "api.tls.key",
	}, log)
	if err != nil {
		return nil, err
	}
	return &tls.Config{
		MinVersion:     tls.VersionTLS12,
		GetCertificate: func(*tls.ClientHelloInfo) (*tls.Certificate, error) { return pair.Now(), nil },
	}, nil
}
