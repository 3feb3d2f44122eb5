// Package codec encrypts what Temporal stores: a payload codec with keys from files,
// the converters that use it, and the HTTP endpoint by which the Temporal Web UI and
// CLI read it again. It imports the Temporal SDK and libraries, nothing of ours. Start
// reading at Ring.Encode; ring.go says where keys come from.
package codec

import (
	"encoding/binary"
	"errors"
	"fmt"

	"go.temporal.io/api/common/v1"
	"go.temporal.io/sdk/converter"
	"google.golang.org/protobuf/proto"
)

// The metadata of an encrypted payload. Stored in histories: never change one.
const (
	metadataCipher = "encryption-cipher"
	metadataKeyID  = "encryption-key-id"
	encoding       = "binary/encrypted"
	cipherName     = "AES-256-GCM"
)

// shownID bounds a key id that comes from a payload, in bytes.
const shownID = 80

var errAltered = errors.New("it was altered or cut off, or the file of this name holds another key")

// UnknownKeyError says that a payload cannot be read here, and which key would do.
type UnknownKeyError struct{ ID string }

// Error names the key, and what to do.
func (e *UnknownKeyError) Error() string {
	return fmt.Sprintf("the payload is encrypted with key %q, which this process does not have: "+
		"put the file of that name into the directory that EGRESSFLEET_CODEC_KEYS names", e.ID)
}

var _ converter.PayloadCodec = (*Ring)(nil)

// Encode encrypts every payload, its metadata included, with the current key and a
// random nonce. A ring without keys leaves them as they are.
func (r *Ring) Encode(payloads []*common.Payload) ([]*common.Payload, error) {
	id, key := r.toEncrypt()
	if key == nil {
		return payloads, nil
	}
	encrypted := make([]*common.Payload, len(payloads))
	for i, p := range payloads {
		plain, err := proto.Marshal(p)
		if err != nil {
			return nil, fmt.Errorf("payload %d: %w", i, err)
		}
		encrypted[i] = &common.Payload{
			Metadata: map[string][]byte{
				converter.MetadataEncoding: []byte(encoding),
				metadataCipher:             []byte(cipherName),
				metadataKeyID:              []byte(id),
			},
			Data: key.Seal(nil, nil, plain, bound(id)), //nolint:gosec // NewGCMWithRandomNonce makes the nonce itself
		}
	}
	return encrypted, nil
}

// Decode decrypts what Encode made with any key of the ring, and leaves alone what was
// written before encryption was turned on. Its errors are an *UnknownKeyError or name
// the key; both block the workflow task that needs the payload, and fail no workflow.
func (r *Ring) Decode(payloads []*common.Payload) ([]*common.Payload, error) {
	plain := make([]*common.Payload, len(payloads))
	for i, p := range payloads {
		if !IsEncrypted(p) {
			plain[i] = p
			continue
		}
		decrypted, err := r.decrypt(p)
		if err != nil {
			return nil, converter.NewWorkflowTaskFailureError(err)
		}
		plain[i] = decrypted
	}
	return plain, nil
}

// IsEncrypted reports whether a payload is one of ours.
func IsEncrypted(p *common.Payload) bool {
	return string(p.GetMetadata()[converter.MetadataEncoding]) == encoding
}

// IsUnreadable reports whether an error is that a payload cannot be decrypted here.
func IsUnreadable(err error) bool {
	_, ok := errors.AsType[*converter.WorkflowTaskFailureError](err)
	return ok
}

func (r *Ring) decrypt(p *common.Payload) (*common.Payload, error) {
	id := string(p.GetMetadata()[metadataKeyID])
	if is := string(p.GetMetadata()[metadataCipher]); is != cipherName {
		return nil, fmt.Errorf("a payload of key %q: its %s is %q, not %q", cut(id), metadataCipher, cut(is), cipherName)
	}
	key := r.toDecrypt(id)
	if key == nil {
		return nil, &UnknownKeyError{ID: cut(id)}
	}
	raw, err := key.Open(nil, nil, p.GetData(), bound(id))
	if err != nil {
		return nil, fmt.Errorf("a payload of key %q cannot be decrypted: %w", id, errAltered)
	}
	plain := &common.Payload{}
	if err := proto.Unmarshal(raw, plain); err != nil {
		return nil, fmt.Errorf("a payload of key %q: %w", id, err)
	}
	return plain, nil
}

// bound is the metadata as additional authenticated data: each part with its length
// before it, so that no two lists give the same bytes.
func bound(id string) (data []byte) {
	for _, part := range []string{encoding, cipherName, id} {
		data = binary.BigEndian.AppendUint32(data, uint32(len(part))) //nolint:gosec // three short texts
		data = append(data, part...)
	}
	return data
}

func cut(s string) string { return s[:min(len(s), shownID)] }
