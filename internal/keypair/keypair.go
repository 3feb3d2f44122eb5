// Package keypair follows the two files of a TLS certificate: what a process proves
// itself with is what they say now. It imports the standard library only. Start
// reading at Open.
package keypair

import (
	"bytes"
	"crypto/tls"
	"fmt"
	"log/slog"
	"os"
	"sync"
	"time"
)

const (
	lookEvery = time.Second // between two looks at the files
	sayEvery  = time.Minute // a fault that stays is said again
)

// Files are the two, in PEM, with the names of the settings that told them; those are
// for errors.
type Files struct {
	Certificate, Key   string // paths
	CertificateSetting string // "api.tls.certificate"
	KeySetting         string // "api.tls.key"
}

// Pair is a certificate with its key, as its files say now. It may be used by many at
// the same time.
type Pair struct {
	files Files
	log   *slog.Logger

	mu     sync.Mutex
	looked time.Time
	text   []byte // both files, as they were read last
	last   *tls.Certificate
	said   string // the fault that was logged last; empty where there is none
	saidAt time.Time
}

// Open reads the files. Its error names them, and holds nothing of the key.
func Open(files Files, log *slog.Logger) (*Pair, error) {
	p := &Pair{files: files, log: log}
	if err := p.read(); err != nil {
		return nil, err
	}
	return p, nil
}

// Now returns the certificate. Files that do not fit together, as in the middle of a
// rotation, change nothing and are logged.
func (p *Pair) Now() *tls.Certificate {
	p.mu.Lock()
	defer p.mu.Unlock()
	if time.Since(p.looked) >= lookEvery {
		p.say(p.read())
	}
	return p.last
}

// say logs a fault when it is another one, and again after a while: a look is made each
// second.
func (p *Pair) say(fault error) {
	text := ""
	if fault != nil {
		text = fault.Error()
	}
	if now := time.Now(); text != p.said || now.Sub(p.saidAt) >= sayEvery {
		p.said, p.saidAt = text, now
		if fault != nil {
			p.log.Error("the certificate is the one of before", slog.String("error", text))
		}
	}
}

func (p *Pair) read() error {
	p.looked = time.Now()
	chain, err := os.ReadFile(p.files.Certificate)
	if err != nil {
		return fmt.Errorf("%s: %w", p.files.CertificateSetting, err)
	}
	key, err := os.ReadFile(p.files.Key)
	if err != nil {
		return fmt.Errorf("%s: %w", p.files.KeySetting, err)
	}
	text := append(append([]byte{}, chain...), key...)
	if bytes.Equal(text, p.text) {
		return nil
	}
	pair, err := tls.X509KeyPair(chain, key)
	if err != nil {
		return fmt.Errorf("%s %s with %s %s: %w", p.files.CertificateSetting, p.files.Certificate,
			p.files.KeySetting, p.files.Key, err)
	}
	p.text, p.last = text, &pair
	return nil
}
