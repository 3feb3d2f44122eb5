package gcp

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"google.golang.org/api/googleapi"
)

// reasons are all words for why that an error of the API has: of its entries, of its
// ErrorInfo, and of its status.
func reasons(e *googleapi.Error) (all []string) {
	for _, entry := range e.Errors {
		all = append(all, entry.Reason)
	}
	for _, detail := range e.Details {
		if info, ok := detail.(map[string]any); ok {
			if reason, ok := info["reason"].(string); ok {
				all = append(all, reason)
			}
		}
	}
	var body struct {
		Error struct {
			Status string `json:"status"`
		} `json:"error"`
	}
	if json.Unmarshal([]byte(e.Body), &body) == nil && body.Error.Status != "" {
		all = append(all, body.Error.Status)
	}
	return all
}

// longest is how much of a message is kept: Google's own are shorter.
const longest = 2000

// clean takes out of an error what may repeat the request or a credential: headers, the
// body, details, and the page of a server in between. What was asked by a context that
// has ended is its cause.
func clean(ctx context.Context, err error) error {
	if err == nil {
		return nil
	}
	if n, ok := errors.AsType[*noCredential](err); ok {
		return n
	}
	if f, ok := errors.AsType[*fault](err); ok {
		return f
	}
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	e, ok := errors.AsType[*googleapi.Error](err)
	if !ok {
		return err
	}
	out := &googleapi.Error{Code: e.Code, Message: shorten(e.Message)}
	for _, reason := range reasons(e) {
		out.Errors = append(out.Errors, googleapi.ErrorItem{Reason: shorten(reason)})
	}
	return &refusal{out, len(e.Body)}
}

// refusal is an answer of Compute Engine in one line; the client's own text has many, and
// the page of another server.
type refusal struct {
	api  *googleapi.Error
	size int // of the answer, in bytes
}

// Error has the status, the reasons and the message.
func (r *refusal) Error() string {
	if r.api.Message == "" && len(r.api.Errors) == 0 {
		return fmt.Sprintf("%d and %d bytes that are no answer of Compute Engine", r.api.Code, r.size)
	}
	var words []string
	for _, entry := range r.api.Errors {
		if entry.Reason != "" && !slices.Contains(words, entry.Reason) {
			words = append(words, entry.Reason)
		}
	}
	return fmt.Sprintf("%d %s: %s", r.api.Code, strings.Join(words, ", "), r.api.Message)
}

// Unwrap is the client's own error, for errors.As.
func (r *refusal) Unwrap() error { return r.api }

func shorten(text string) string {
	if len(text) > longest {
		return strings.ToValidUTF8(text[:longest], "") + "…"
	}
	return text
}

// shortEcho is how much of user-data in a message is no chance.
const shortEcho = 8

// withhold takes the message out of the answer to a create that repeats user-data: an
// invalid value is quoted by the API.
func withhold(err error, userData []byte) error {
	r, ok := errors.AsType[*refusal](err)
	if !ok || !echoes(r.api.Message, userData) {
		return err
	}
	api := *r.api
	api.Message = "the message is not shown, because it repeats user-data"
	return &refusal{&api, r.size}
}

// echoes reports whether a message has a line of user-data in it, as it is or in base64.
func echoes(message string, userData []byte) bool {
	encoded := base64.StdEncoding.EncodeToString(userData)
	if len(encoded) >= 2*shortEcho && strings.Contains(message, encoded[:2*shortEcho]) {
		return true
	}
	for line := range strings.Lines(string(userData)) {
		if line = strings.TrimSpace(line); len(line) >= shortEcho && strings.Contains(message, line) {
			return true
		}
	}
	return false
}
