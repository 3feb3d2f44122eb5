package conn

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"os"
	"slices"

	"github.com/skeema/knownhosts"
	"golang.org/x/crypto/ssh"
)

// What is larger is no such file.
const (
	keyFileMax    = 64 << 10
	knownHostsMax = 4 << 20
)

// The modes that a file must not have: others must not read a key, and must not say whom
// to trust. A group may read the key, since mounted Secrets come that way.
const (
	keyFileOpen    fs.FileMode = 0o027
	knownHostsOpen fs.FileMode = 0o022
)

// credentials are what one dial goes by.
type credentials struct {
	signer     ssh.Signer
	check      ssh.HostKeyCallback
	algorithms []string // of the host keys that are known
}

// credentials reads the files. Nothing of them is kept: the next dial takes what is there then.
func (h *Host) credentials() (credentials, error) {
	signer, err := h.signer()
	if err != nil {
		return credentials{}, err
	}
	known, err := h.known()
	if err != nil {
		return credentials{}, err
	}
	algorithms := acceptable(known.HostKeyAlgorithms(h.config.Address))
	if len(algorithms) == 0 {
		return credentials{}, h.unknownHostKey()
	}
	return credentials{signer, known.HostKeyCallback(), algorithms}, nil
}

func (h *Host) signer() (ssh.Signer, error) {
	path := h.config.KeyFile
	content, err := h.content("keyFile", path, keyFileOpen, keyFileMax)
	if err != nil {
		return nil, err
	}
	signer, err := ssh.ParsePrivateKey(content)
	if _, encrypted := errors.AsType[*ssh.PassphraseMissingError](err); encrypted {
		return nil, h.invalid("keyFile", path, "is encrypted", "nobody is there to type a passphrase: use a key without one")
	}
	if err != nil { // its text is left out, so that nothing of the file can be in it
		return nil, h.invalid("keyFile", path, "holds no private key", "is it the public half, or another file?")
	}
	return signer, nil
}

func (h *Host) known() (*knownhosts.HostKeyDB, error) {
	path := h.config.KnownHostsFile
	if _, err := h.content("knownHostsFile", path, knownHostsOpen, knownHostsMax); err != nil {
		return nil, err
	}
	db, err := knownhosts.NewDB(path)
	if err != nil {
		return nil, h.invalid("knownHostsFile", path, err.Error(), "a line is NAME TYPE KEY, as ssh-keyscan prints it")
	}
	return db, nil
}

// content reads a file that is no larger than limit and has none of the bits of open.
func (h *Host) content(field, path string, open fs.FileMode, limit int64) ([]byte, error) {
	file, err := os.Open(path) //nolint:gosec // the path is the configuration's
	if errors.Is(err, fs.ErrNotExist) {
		err = fmt.Errorf("%s %s is not there", field, path)
		return nil, &Error{h.config.Host, StageFiles, FileMissing, "", err}
	}
	if err != nil {
		return nil, h.invalid(field, path, "cannot be read", "which user does the worker run as?")
	}
	defer func() { _ = file.Close() }()
	info, err := file.Stat()
	switch {
	case err != nil:
		return nil, h.invalid(field, path, "cannot be read", "")
	case !info.Mode().IsRegular():
		return nil, h.invalid(field, path, "is no file", "")
	case info.Mode().Perm()&open != 0:
		return nil, h.invalid(field, path, fmt.Sprintf("is open to others: its mode is %04o", info.Mode().Perm()),
			fmt.Sprintf("allow no more than %04o", 0o777&^open&^0o111))
	case info.Size() > limit:
		return nil, h.invalid(field, path, fmt.Sprintf("has %d bytes, more than %d", info.Size(), limit), "")
	}
	content, err := io.ReadAll(io.LimitReader(file, limit))
	if err != nil {
		return nil, h.invalid(field, path, "cannot be read", "")
	}
	return content, nil
}

func (h *Host) invalid(field, path, what, hint string) error {
	return &Error{h.config.Host, StageFiles, FileInvalid, hint, fmt.Errorf("%s %s: %s", field, path, what)}
}

func (h *Host) unknownHostKey() error {
	host, port, _ := net.SplitHostPort(h.config.Address)
	hint := fmt.Sprintf("add what ssh-keyscan -p %s %s prints, once you have compared it with the keys "+
		"on the host's console", port, host)
	err := fmt.Errorf("%s has no key for %s", h.config.KnownHostsFile, h.config.Address)
	return &Error{h.config.Host, StageHostKey, HostKeyUnknown, hint, err}
}

// acceptable leaves out what rests on SHA-1.
func acceptable(algorithms []string) []string {
	insecure := ssh.InsecureAlgorithms().HostKeys
	return slices.DeleteFunc(algorithms, func(name string) bool { return slices.Contains(insecure, name) })
}
