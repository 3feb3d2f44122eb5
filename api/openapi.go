// Package api holds the HTTP contract, openapi.yaml, as a server hands it out. Its rooms
// are api/v1, the words; api/server; api/discovery; api/access; and api/client.
package api

import _ "embed"

// OpenAPI is the contract as it is written.
//
//go:embed openapi.yaml
var OpenAPI []byte
