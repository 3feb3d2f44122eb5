package activities

import (
	"context"
	"errors"
	"fmt"

	"go.temporal.io/sdk/activity"

	v1 "github.com/egressfleet/egressfleet/api/v1"
	"github.com/egressfleet/egressfleet/providers"
)

// SecretDigest is what history may know of a secret: where it is, its SHA-256 in
// hexadecimal and its size in bytes.
type SecretDigest struct {
	Ref    v1.SecretRef `json:"ref"`
	SHA256 string       `json:"sha256"`
	Bytes  int          `json:"bytes"`
}

// DigestInput names the secret whose digest a proxy on a provider needs.
type DigestInput struct {
	Provider string       `json:"provider"`
	Ref      v1.SecretRef `json:"ref"`
}

// DigestCloudInit reads a secret and returns its digest, never its content. A
// secret that is not there yet is ErrTransient: it may be on its way.
func (a *Instances) DigestCloudInit(ctx context.Context, in DigestInput) (SecretDigest, error) {
	content, err := a.readSecret(in.Provider, in.Ref)
	if err != nil {
		return SecretDigest{}, lastWord(ctx, ToApplicationError(err))
	}
	activity.GetLogger(ctx).Debug("read a secret", "secret", in.Ref.Name, "key", in.Ref.Key, "bytes", len(content))
	return SecretDigest{Ref: in.Ref, SHA256: v1.Digest(content), Bytes: len(content)}, nil
}

// userData returns the bytes that an instance gets.
func (a *Instances) userData(in CreateInput) ([]byte, error) {
	if in.CloudInit.IsRedacted() { // the workflow asks for none; an instance without its user-data would serve nobody
		return nil, providers.Wrap(providers.ErrPermanent, providers.OpCreate, in.Provider, "",
			fmt.Errorf("cloudInit.inline: %q stands for a content that is not known; apply the spec again", in.CloudInit.Inline))
	}
	if in.CloudInit.SecretRef == nil {
		return in.CloudInit.Bytes(), nil
	}
	content, err := a.readSecret(in.Provider, *in.CloudInit.SecretRef)
	if err == nil && v1.Digest(content) != in.Digest {
		err = wrapSecret(providers.ErrTransient, in.Provider, *in.CloudInit.SecretRef,
			errors.New("its content has changed since the spec was looked at"))
	}
	return content, err
}
