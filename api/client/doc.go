// Package client asks the HTTP API: one method for each operation of api/openapi.yaml.
// All of it is generated but this file; the types that people know are those of api/v1.
// Start reading at NewClientWithResponses and WithToken.
package client

import (
	"context"
	"net/http"
)

//go:generate go tool -modfile=../../tools/openapi/go.mod oapi-codegen -config ../oapi-client.yaml ../openapi.yaml

// WithToken shows a token with every request.
func WithToken(token string) ClientOption {
	return WithRequestEditorFn(func(_ context.Context, r *http.Request) error {
		r.Header.Set("Authorization", "Bearer "+token)
		return nil
	})
}
