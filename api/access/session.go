package access

import (
	"crypto/aes"
	"crypto/cipher"
	"crypto/hkdf"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base64"
	"strconv"
	"strings"
	"time"
)

// A session is what a browser keeps of a token: who has it, until when, and a seal that
// nobody makes without the token, nor opens without the file:
//
//	v1.NAME.UNIXSECONDS.SEAL
//
// Whoever finds one has no token, and what it opens ends with its time. It holds for every
// process that has the same file, and as long as that lists the token: nothing is kept
// about it anywhere. A code keyed by the file alone would not do: the file is there to be
// read, and whoever reads it must not be let in by it.
const (
	sessionVersion = "v1"
	sessionKeyInfo = "egressfleet session " + sessionVersion
)

// Session seals a token that is known, until a time; it is empty for any other token.
func (f *File) Session(token string, until time.Time) string {
	known := f.current()
	at := known.index(token)
	if at < 0 {
		return ""
	}
	return known[at].session(token, until)
}

// session is a session of this page, whatever is sealed in it.
func (p page) session(token string, until time.Time) string {
	seal, err := p.seal()
	if err != nil {
		return ""
	}
	open := sessionVersion + "." + p.grant.Name + "." + strconv.FormatInt(until.Unix(), 10)
	sealed := seal.Seal(nil, nil, []byte(token), []byte(open)) //nolint:gosec // it draws its nonces itself
	return open + "." + base64.RawURLEncoding.EncodeToString(sealed)
}

// Resume returns the grant of a session and when that ends, or nil for one that is over,
// is nobody's or was changed, and for one whose token the file does not list any more.
func (f *File) Resume(session string, now time.Time) (*Grant, time.Time) {
	known := f.current()
	cut := strings.LastIndexByte(session, '.')
	parts := strings.Split(session, ".")
	if len(parts) != 4 || parts[0] != sessionVersion {
		return nil, time.Time{}
	}
	seconds, err := strconv.ParseInt(parts[2], 10, 64)
	until := time.Unix(seconds, 0)
	if err != nil || !now.Before(until) {
		return nil, time.Time{}
	}
	sealed, err := base64.RawURLEncoding.Strict().DecodeString(parts[3])
	if err != nil {
		return nil, time.Time{}
	}
	for _, p := range known {
		if p.grant.Name == parts[1] && p.opens(sealed, session[:cut]) {
			return p.grant, until
		}
	}
	return nil, time.Time{}
}

// opens reports whether what is sealed for this page is its token.
func (p page) opens(sealed []byte, open string) bool {
	seal, err := p.seal()
	if err != nil {
		return false
	}
	token, err := seal.Open(nil, nil, sealed, []byte(open))
	sum := sha256.Sum256(token)
	return err == nil && subtle.ConstantTimeCompare(sum[:], p.sum) == 1
}

func (p page) seal() (cipher.AEAD, error) {
	const keyBytes = 32
	key, err := hkdf.Key(sha256.New, p.sum, nil, sessionKeyInfo, keyBytes)
	if err != nil {
		return nil, err
	}
	block, err := aes.NewCipher(key)
	if err != nil {
		return nil, err
	}
	return cipher.NewGCMWithRandomNonce(block)
}
