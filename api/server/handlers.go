package server

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"net/http"
	"regexp"
	"strconv"

	"github.com/egressfleet/egressfleet/api/feedback"
	"github.com/egressfleet/egressfleet/api/server/openapi"
	v1 "github.com/egressfleet/egressfleet/api/v1"
	"github.com/egressfleet/egressfleet/starter/fleet"
)

// handlers are the operations of openapi.yaml, one method each.
type handlers struct {
	fleet     Fleet
	snapshot  *snapshot
	providers func() (v1.ProviderList, bool)
	checks    *checks
	feedback  *feedback.Box
	waits     *places // of writes that wait for what they asked for
}

var _ openapi.StrictServerInterface = handlers{}

// ApplyProxy makes a Proxy wanted.
func (h handlers) ApplyProxy(
	ctx context.Context, r openapi.ApplyProxyRequestObject,
) (openapi.ApplyProxyResponseObject, error) {
	if err := checkKey(r.Params.IdempotencyKey); err != nil {
		return nil, err
	}
	wanted, err := wantedProxy(r.Namespace, r.Name, *r.Body)
	if err != nil {
		return nil, err
	}
	id, err := requestID(r.Params.IdempotencyKey, wanted)
	if err != nil {
		return nil, err
	}
	if err := h.mayApply(ctx, wanted); err != nil {
		return nil, err
	}
	generation, err := expected(r.Params.IfMatch)
	if err != nil {
		return nil, err
	}
	asked := fleet.Request{ID: id, IfGeneration: generation}
	applied, created, err := h.fleet.Apply(ctx, wanted, asked)
	switch {
	case err != nil:
		return nil, unmatched(asked, err)
	case !created:
		return h.settled(ctx, r.Params.Wait, proxyAnswer{http.StatusOK, applied, ""})
	default:
		return h.settled(ctx, r.Params.Wait, proxyAnswer{http.StatusCreated, applied, proxyPath(r.Namespace, r.Name)})
	}
}

// GetProxy reads a Proxy.
func (h handlers) GetProxy(
	ctx context.Context, r openapi.GetProxyRequestObject,
) (openapi.GetProxyResponseObject, error) {
	if err := checkNames(r.Namespace, r.Name); err != nil {
		return nil, err
	}
	found, err := h.seen(ctx, r.Namespace, r.Name)
	if err != nil {
		return nil, err
	}
	return proxyAnswer{http.StatusOK, found, ""}, nil
}

// wantedProxy is what a body asks for under the names of its path.
func wantedProxy(namespace, name string, body v1.Proxy) (v1.Proxy, error) {
	for _, given := range []struct{ field, body, path string }{
		{"metadata.namespace", body.Metadata.Namespace, namespace},
		{"metadata.name", body.Metadata.Name, name},
	} {
		if given.body != "" && given.body != given.path {
			return v1.Proxy{}, &v1.FieldError{
				Field: given.field, Value: given.body,
				Problem: "is not " + strconv.Quote(cut(given.path, shownValue)) + ", the one in the path",
			}
		}
	}
	wanted := v1.Proxy{
		Metadata: v1.Metadata{Namespace: namespace, Name: name, Labels: body.Metadata.Labels},
		Spec:     body.Spec,
	}
	if err := wanted.Metadata.Validate(); err != nil {
		return v1.Proxy{}, err
	}
	return wanted, wanted.Spec.Validate()
}

// redacted returns p as answers show it: without the content of its cloud-init.
// The fleet leaves it out already; this is the last door.
func redacted(p v1.Proxy) v1.Proxy {
	p.Spec = p.Spec.Redacted()
	return p
}

func checkNames(namespace, name string) error {
	return v1.Metadata{Namespace: namespace, Name: name}.Validate()
}

func proxyPath(namespace, name string) string {
	return "/v1/namespaces/" + namespace + "/proxies/" + name
}

var printable = regexp.MustCompile(`^[\x20-\x7e]{1,128}$`)

func checkKey(key *string) error {
	if key == nil || printable.MatchString(*key) {
		return nil
	}
	return &v1.FieldError{Field: idempotencyKey, Value: *key, Problem: "is not 1 to 128 printable ASCII characters"}
}

// contentBytes of a hash tell apart what is sent with one key; nobody gains by a
// collision, since the key is the client's own.
const contentBytes = 8

// requestID is the client's Idempotency-Key and a hash of what is asked with it, or
// one that nobody else has. A key that is used again for something else must not be
// answered with what came of the first.
func requestID(key *string, asked any) (string, error) {
	if key == nil {
		return rand.Text(), nil
	}
	content, err := json.Marshal(asked) // sorts the labels
	if err != nil {
		return "", err
	}
	hash := sha256.Sum256(content)
	return *key + "-" + hex.EncodeToString(hash[:contentBytes]), nil
}
