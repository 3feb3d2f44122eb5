// Package client asks the HTTP API: one method for each operation of api/openapi.yaml.
// All of it is generated but this file; the types that people know are those of api/v1.
// Start reading at NewClientWithResponses, WithToken and ProblemOf.
package client

import (
	"context"
	"encoding/json"
	"fmt"
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

// Error says what is wrong and what helps, so that a problem can be returned as an error.
func (p *Problem) Error() string { return fmt.Sprintf("%s (%s, %d)", p.Detail, p.Type, p.Status) }

// shownBody of an answer that is no problem document, in bytes.
const shownBody = 200

// ProblemOf returns nil for an answer of a status below 400. Any other is an error: the
// *Problem that the server tells, or what the body begins with, where something on the way
// has answered.
func ProblemOf(status int, body []byte) error {
	if status < http.StatusBadRequest {
		return nil
	}
	var p Problem
	if err := json.Unmarshal(body, &p); err == nil && p.Type != "" {
		return &p
	}
	return fmt.Errorf("%d %s: %q", status, http.StatusText(status), body[:min(len(body), shownBody)])
}
