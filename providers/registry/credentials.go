package registry

import (
	"crypto/sha256"
	"encoding/hex"
	"io"
	"log/slog"
	"os"
	"slices"

	"github.com/egressfleet/egressfleet/providers"
)

// files are paths.
type files []string

// digests are what files hold, by path.
type digests map[string]string

// absent is the digest of a file that is not there or cannot be read.
const absent = ""

// filesOf returns the credential files that a provider names, sorted.
func filesOf(p providers.Provider) files {
	named, ok := providers.As[providers.Credentialed](p)
	if !ok {
		return nil
	}
	return slices.Compact(slices.Sorted(slices.Values(named.CredentialFiles())))
}

// digests reads every file.
func (f files) digests() digests {
	d := digests{}
	for _, path := range f {
		d[path] = digestOf(path)
	}
	return d
}

// digestOf reads one file; what is no regular file is not waited for.
func digestOf(path string) string {
	if info, err := os.Stat(path); err != nil || !info.Mode().IsRegular() {
		return absent
	}
	f, err := os.Open(path) //nolint:gosec // the path is the operator's own
	if err != nil {
		return absent
	}
	defer func() { _ = f.Close() }()
	h := sha256.New()
	if _, err := io.Copy(h, f); err != nil {
		return absent
	}
	return hex.EncodeToString(h.Sum(nil))
}

// warnOfAbsent tells of credentials that are not there yet. Their provider is served all
// the same: a Secret may come later.
func (l *Live) warnOfAbsent(names []string) {
	for _, name := range names {
		h := l.current.Load().held[name]
		for _, path := range h.files() {
			if h.credentials[path] == absent {
				l.opts.Logger.Warn("a credential file is not there or cannot be read",
					slog.String("provider", name), slog.String("file", path))
			}
		}
	}
}
