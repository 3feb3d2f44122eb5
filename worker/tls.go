package main

import (
	"bytes"
	"crypto/tls"
	"fmt"
	"log/slog"
	"os"
	"sync"
	"time"

	"github.com/egressfleet/egressfleet/internal/config"
)

// lookAtCertificateEvery is between two looks at the files of a certificate.
const lookAtCertificateEvery = time.Second

// certificate is what the API proves itself with, as its files say now.
type certificate struct {
	files config.TLS
	log   *slog.Logger

	mu     sync.Mutex
	looked time.Time
	text   []byte // both files, as they were read last
	last   *tls.Certificate
}

// openCertificate reads the files. Its error names them, and holds nothing of the key.
func openCertificate(files config.TLS, log *slog.Logger) (*certificate, error) {
	c := &certificate{files: files, log: log}
	if err := c.read(); err != nil {
		return nil, err
	}
	return c, nil
}

// config is for a server: a new certificate counts from the next handshake.
func (c *certificate) config() *tls.Config {
	return &tls.Config{
		MinVersion:     tls.VersionTLS12,
		GetCertificate: func(*tls.ClientHelloInfo) (*tls.Certificate, error) { return c.now(), nil },
	}
}

// now returns the certificate. Files that do not fit together, as in the middle of a
// rotation, change nothing.
func (c *certificate) now() *tls.Certificate {
	c.mu.Lock()
	defer c.mu.Unlock()
	if time.Since(c.looked) >= lookAtCertificateEvery {
		if err := c.read(); err != nil {
			c.log.Error("the certificate is the one of before", slog.String("error", err.Error()))
		}
	}
	return c.last
}

func (c *certificate) read() error {
	c.looked = time.Now()
	chain, err := os.ReadFile(c.files.Certificate)
	if err != nil {
		return fmt.Errorf("api.tls.certificate: %w", err)
	}
	key, err := os.ReadFile(c.files.Key)
	if err != nil {
		return fmt.Errorf("api.tls.key: %w", err)
	}
	text := append(append([]byte{}, chain...), key...)
	if bytes.Equal(text, c.text) {
		return nil
	}
	pair, err := tls.X509KeyPair(chain, key)
	if err != nil {
		return fmt.Errorf("api.tls: %s with %s: %w", c.files.Certificate, c.files.Key, err)
	}
	c.text, c.last = text, &pair
	return nil
}
