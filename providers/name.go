package providers

import (
	"crypto/sha256"
	"encoding/base32"
	"strings"
)

// nameBytes of a digest make nameChars characters of base32 without padding.
const nameBytes = 10

// NameFromUID returns the instance name of a UID: "proxy-" and 16 characters of
// lowercase base32, 22 in all, a valid DNS label. It is the same every time:
// Create is idempotent by it. Contract §6.
func NameFromUID(uid string) string {
	sum := sha256.Sum256([]byte(uid))
	return "proxy-" + strings.ToLower(base32.StdEncoding.EncodeToString(sum[:nameBytes]))
}
