package proxy

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"strings"

	v1 "github.com/egressfleet/egressfleet/api/v1"
)

// hashers holds every version of the spec hash that a running workflow may carry.
// A recorded hash is compared under its own version: a new one replaces nothing.
var hashers = map[string]func(s v1.ProxySpec, userData string) string{"v1": hashV1}

const hashNewest = "v1"

// specHash covers what replaces an instance when it changes; userData is the digest
// of the user-data.
func specHash(s v1.ProxySpec, userData string) string {
	return hashNewest + ":" + hashers[hashNewest](s, userData)
}

// madeFrom reports whether a recorded hash still stands for the spec.
func madeFrom(recorded string, s v1.ProxySpec, userData string) bool {
	version, sum, _ := strings.Cut(recorded, ":")
	hash, known := hashers[version]
	return known && hash(s, userData) == sum
}

// MadeFrom is madeFrom for those who compare from outside: the drift sweep.
func MadeFrom(recorded string, s v1.ProxySpec, userData string) bool {
	return madeFrom(recorded, s, userData)
}

// hashV1 covers placement, user-data and port. Fields are named, so that a new field
// of the spec does not change it.
func hashV1(s v1.ProxySpec, userData string) string {
	p := s.Placement
	in, _ := json.Marshal([]any{p.Region, p.Zone, p.MachineType, p.Image, userData, s.Port})
	sum := sha256.Sum256(in)
	return hex.EncodeToString(sum[:16])
}

// specMark is what an instance remembers of its Proxy, so that it can be brought
// back when the database is lost. Serialised on instances: add fields only.
type specMark struct {
	Placement v1.Placement `json:"placement,omitzero"`
	Port      int          `json:"port"`
	CloudInit v1.CloudInit `json:"cloudInit,omitzero"` // a reference or a stand-in, never content
	Digest    string       `json:"cloudInitSHA256,omitempty"`
	SpecHash  string       `json:"specHash"`
}

// SpecMark is the mark of an instance that is made from a spec; userData is the digest of
// its user-data.
func SpecMark(s v1.ProxySpec, userData string) string { return specMarkOf(s, userData) }

func specMarkOf(s v1.ProxySpec, userData string) string {
	out, _ := json.Marshal(specMark{
		Placement: s.Placement, Port: s.Port, CloudInit: s.CloudInit.Redacted(),
		Digest: userData, SpecHash: specHash(s, userData),
	})
	return string(out)
}
