package activities

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	v1 "github.com/egressfleet/egressfleet/api/v1"
	"github.com/egressfleet/egressfleet/internal/config"
	"github.com/egressfleet/egressfleet/providers"
)

// maxSecret bounds what is read of a secret, in bytes. Kubernetes has no larger ones.
const maxSecret = 1 << 20

// SecretVariable returns the variable that may hold the content of a secret:
// EGRESSFLEET_SECRET_INIT_USER_DATA for the key user-data of the secret init. It holds
// text alone; a variable has no zero bytes, and on Linux at most 128 KiB.
func SecretVariable(ref v1.SecretRef) string {
	return config.EnvSecretPrefix + strings.ToUpper(strings.NewReplacer("-", "_", ".", "_").Replace(ref.Name+"_"+ref.Key))
}

// readSecret returns the bytes of a secret: from the directory or from the environment,
// and never from one of two that differ without anybody's notice.
func (a *Instances) readSecret(provider string, ref v1.SecretRef) ([]byte, error) {
	content, err := a.secretFile(ref)
	text, variable := a.secretText(ref)
	switch {
	case err == nil && text != "":
		return nil, wrapSecret(providers.ErrPermanent, provider, ref,
			fmt.Errorf("it is in secretsDir and in the variable %s: keep one of them", variable))
	case errors.Is(err, errTooLarge):
		return nil, wrapSecret(providers.ErrPermanent, provider, ref, err)
	case err == nil:
		return content, nil
	case errors.Is(err, errNoDirectory) && text == "":
		return nil, wrapSecret(providers.ErrPermanent, provider, ref,
			fmt.Errorf("%w, and the variable %s is not set", err, variable))
	case errors.Is(err, fs.ErrNotExist) && text == "":
		return nil, wrapSecret(providers.ErrTransient, provider, ref,
			fmt.Errorf("it is not in secretsDir (%w), and the variable %s is not set", bare(err), variable))
	case !errors.Is(err, errNoDirectory) && !errors.Is(err, fs.ErrNotExist):
		return nil, wrapSecret(providers.ErrTransient, provider, ref, bare(err)) // it is there, and cannot be read
	}
	if other := a.claim(variable, ref); other != ref {
		return nil, wrapSecret(providers.ErrPermanent, provider, ref, fmt.Errorf(
			"the variable %s is that of secretRef %q, key %q, too, and has been used for it: "+
				"rename one of them, or put it into secretsDir", variable, other.Name, other.Key))
	}
	return []byte(text), nil
}

var (
	errNoDirectory = errors.New("this worker has no secretsDir configured")
	errTooLarge    = errors.New("it is too large")
)

func (a *Instances) secretFile(ref v1.SecretRef) ([]byte, error) {
	if a.SecretsDir == "" {
		return nil, errNoDirectory
	}
	// Name and key are checked not to leave the folder; OpenInRoot holds it for links, too.
	file, err := os.OpenInRoot(a.SecretsDir, filepath.Join(ref.Name, ref.Key))
	if err != nil {
		return nil, err
	}
	defer func() { _ = file.Close() }()
	info, err := file.Stat()
	if err == nil && info.Size() > maxSecret {
		return nil, fmt.Errorf("%w: %d bytes are more than %d", errTooLarge, info.Size(), maxSecret)
	}
	content, readErr := io.ReadAll(io.LimitReader(file, maxSecret))
	return content, errors.Join(err, readErr)
}

// secretText returns what the environment holds, and the name of the variable. An empty
// variable is none.
func (a *Instances) secretText(ref v1.SecretRef) (text, variable string) {
	variable = SecretVariable(ref)
	if a.Getenv != nil {
		text = a.Getenv(variable)
	}
	return text, variable
}

// claim gives a variable to the first reference that uses it, until the worker ends, and
// returns whose it is: a-b/c and a/b.c have one name, and an instance must not get what
// is meant for another one.
func (a *Instances) claim(variable string, ref v1.SecretRef) v1.SecretRef {
	first, _ := a.claims.LoadOrStore(variable, ref)
	owner, _ := first.(v1.SecretRef)
	return owner
}

func wrapSecret(class providers.Class, provider string, ref v1.SecretRef, err error) error {
	return providers.Wrap(class, providers.OpCreate, provider, "",
		fmt.Errorf("spec.cloudInit.secretRef %q, key %q: %w", ref.Name, ref.Key, err))
}

// bare leaves out the path of the worker's file system.
func bare(err error) error {
	if p, ok := errors.AsType[*fs.PathError](err); ok {
		return p.Err
	}
	return err
}
