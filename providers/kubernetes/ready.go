package kubernetes

import (
	"context"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

// lacksRight reports whether an error says that a right is missing. Admission refuses
// with the same status and reason, in other words.
func lacksRight(err error) bool {
	return apierrors.IsForbidden(err) && strings.Contains(err.Error(), `" cannot `)
}

// ready asks whether an API server is. One that has just started answers before it
// knows the roles, and denies everything: a proxy must not be blocked for that. Where
// the question is not answered at all, by a gateway in front, the server is taken for
// one that is.
func ready(ctx context.Context, client api) error {
	_, err := client.Raw(ctx, "/readyz")
	if err == nil || apierrors.IsNotFound(err) {
		return nil
	}
	return err
}
