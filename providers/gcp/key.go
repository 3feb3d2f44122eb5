package gcp

import (
	"crypto/x509"
	"encoding/pem"
	"regexp"
)

// oauthCode is how RFC 6749 writes the code of an error; anything longer could be more.
var oauthCode = regexp.MustCompile(`^[a-z_]{3,40}$`)

// isPrivateKey reports whether a text is a private key in PEM, which nothing else checks
// before the first call.
func isPrivateKey(text string) bool {
	block, _ := pem.Decode([]byte(text))
	if block == nil {
		return false
	}
	if _, err := x509.ParsePKCS8PrivateKey(block.Bytes); err == nil {
		return true
	}
	_, err := x509.ParsePKCS1PrivateKey(block.Bytes)
	return err == nil
}
