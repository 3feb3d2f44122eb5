package codec

import (
	"crypto/aes"
	"crypto/cipher"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strings"
)

const (
	keyBytes = 32
	// keyText is a key as standard base64.
	keyText = 44
	// everybody is the part of a file's mode that is about all users of the machine.
	everybody = 0o007
)

var keyName = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]{0,62}$`)

// MakeKey is a command that makes a key file, for errors and documentation.
const MakeKey = "(umask 077; openssl rand -base64 32 > FILE)"

// keys holds every key of a directory by its id, the name of its file.
type keys map[string]cipher.AEAD

// readKeys reads a directory. What begins with a dot is not ours: Kubernetes keeps the
// versions of a mounted Secret there. Errors name the file, and never what it holds.
func readKeys(dir string) (keys, error) {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, fmt.Errorf("the directory of keys: %w", err)
	}
	defer func() { _ = root.Close() }()
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, fmt.Errorf("the directory of keys: %w", err)
	}
	found := keys{}
	for _, entry := range entries {
		if strings.HasPrefix(entry.Name(), ".") {
			continue
		}
		if found[entry.Name()], err = readKey(root, entry.Name()); err != nil {
			return nil, fmt.Errorf("key file %s: %w", filepath.Join(dir, entry.Name()), err)
		}
	}
	if len(found) == 0 {
		return nil, fmt.Errorf("the directory of keys %s holds no key; make one: %s", dir, MakeKey)
	}
	return found, nil
}

func readKey(root *os.Root, name string) (cipher.AEAD, error) {
	if !keyName.MatchString(name) {
		return nil, errors.New("its name is no key id: 1 to 63 of letters, digits, '.', '_' and '-', " +
			"beginning with a letter or digit")
	}
	info, err := root.Stat(name) // before it is opened: a pipe would wait for its other end
	switch {
	case err != nil:
		return nil, err
	case !info.Mode().IsRegular():
		return nil, errors.New("is not a file")
	case info.Mode().Perm()&everybody != 0:
		return nil, fmt.Errorf("its mode %04o lets everybody at it; chmod 0600, or defaultMode: 0440 of a mounted Secret",
			info.Mode().Perm())
	}
	file, err := root.Open(name)
	if err != nil {
		return nil, err
	}
	defer func() { _ = file.Close() }()
	text, err := io.ReadAll(io.LimitReader(file, keyText+2))
	if err != nil {
		return nil, err
	}
	return parseKey(strings.TrimSuffix(string(text), "\n"))
}

// parseKey takes one form alone: 32 bytes in standard base64. A guess among several
// forms could take a damaged key for another one.
func parseKey(text string) (cipher.AEAD, error) {
	raw, err := base64.StdEncoding.Strict().DecodeString(text)
	if err != nil || len(text) != keyText || len(raw) != keyBytes {
		return nil, fmt.Errorf("does not hold %d bytes in standard base64, %d characters on one line; make one: %s",
			keyBytes, keyText, MakeKey)
	}
	block, err := aes.NewCipher(raw)
	if err != nil {
		return nil, err
	}
	return cipher.NewGCMWithRandomNonce(block)
}
