package config

import (
	"context"
	"crypto/tls"
	"fmt"
	"log/slog"
	"net"
	"os"
	"strings"
	"sync"
	"time"

	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/contrib/envconfig"

	"github.com/egressfleet/egressfleet/internal/keypair"
)

// follow puts what its files say now in the place of what they said at the start.
// Temporal's own loader has read the same files, and refused what does not fit.
func (t Temporal) follow(o *client.Options, profile envconfig.ClientConfigProfile, log *slog.Logger) error {
	if err := t.followKey(o, profile.APIKey != "", log); err != nil {
		return err
	}
	host, _, _ := net.SplitHostPort(o.HostPort)
	if o.Credentials != nil && o.ConnectionOptions.TLSDisabled && !loopback(host) { // a sidecar is on this machine
		return fmt.Errorf("TEMPORAL_TLS: an API key is not sent to %s in plain text; leave it out, or do without the key",
			o.HostPort)
	}
	if profile.TLS == nil || o.ConnectionOptions.TLS == nil || profile.TLS.ClientCertPath == "" {
		return nil
	}
	pair, err := keypair.Open(keypair.Files{
		Certificate: profile.TLS.ClientCertPath, CertificateSetting: "TEMPORAL_TLS_CLIENT_CERT_PATH",
		Key: profile.TLS.ClientKeyPath, KeySetting: "TEMPORAL_TLS_CLIENT_KEY_PATH",
	}, log)
	if err != nil {
		return err
	}
	o.ConnectionOptions.TLS.Certificates = nil
	o.ConnectionOptions.TLS.GetClientCertificate = func(*tls.CertificateRequestInfo) (*tls.Certificate, error) {
		return pair.Now(), nil
	}
	return nil
}

func (t Temporal) followKey(o *client.Options, other bool, log *slog.Logger) error {
	switch {
	case t.APIKeyFile == "":
		return nil
	case other:
		return fmt.Errorf("temporal.apiKeyFile: %q, and TEMPORAL_API_KEY or the profile file has a key, too; give one",
			t.APIKeyFile)
	}
	key := &keyFile{path: t.APIKeyFile, log: log}
	if err := key.read(); err != nil {
		return err
	}
	o.Credentials = client.NewAPIKeyDynamicCredentials(key.now)
	if o.ConnectionOptions.TLS == nil && !o.ConnectionOptions.TLSDisabled {
		o.ConnectionOptions.TLS = &tls.Config{MinVersion: tls.VersionTLS12}
	}
	return nil
}

// lookAtKeyEvery is between two looks at the file of the API key, which every call to
// Temporal asks for.
const lookAtKeyEvery = time.Second

// keyFile is the API key as its file says now.
type keyFile struct {
	path string
	log  *slog.Logger

	mu     sync.Mutex
	looked time.Time
	key    string
	fault  string // that the log has told: one look a second would fill it
}

// now returns the key. A file that cannot be used changes nothing.
func (k *keyFile) now(context.Context) (string, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if time.Since(k.looked) >= lookAtKeyEvery {
		k.tell(k.read())
	}
	return k.key, nil
}

// tell logs a fault once, until it is another one or over.
func (k *keyFile) tell(err error) {
	fault := ""
	if err != nil {
		fault = err.Error()
	}
	if fault != "" && fault != k.fault {
		k.log.Error("the API key of Temporal is the one of before", slog.String("error", fault))
	}
	k.fault = fault
}

func (k *keyFile) read() error {
	k.looked = time.Now()
	text, err := os.ReadFile(k.path)
	if err != nil {
		return fmt.Errorf("temporal.apiKeyFile: %w", err)
	}
	key := strings.TrimSpace(string(text))
	if key == "" || strings.ContainsFunc(key, unprintable) {
		return fmt.Errorf("temporal.apiKeyFile: %s: is not one line with a key", k.path)
	}
	k.key = key
	return nil
}

// unprintable is what no header may hold.
func unprintable(r rune) bool { return r <= ' ' || r > '~' }
