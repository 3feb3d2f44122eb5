package server

import (
	"cmp"
	"context"
	"encoding/base64"
	"slices"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/labels"

	"github.com/egressfleet/egressfleet/api/access"
	"github.com/egressfleet/egressfleet/api/server/openapi"
	v1 "github.com/egressfleet/egressfleet/api/v1"
)

// ListProxies lists the Proxies of a namespace.
func (h handlers) ListProxies(
	ctx context.Context, r openapi.ListProxiesRequestObject,
) (openapi.ListProxiesResponseObject, error) {
	const anyName = "a" // a namespace has no name to check
	if err := checkNames(r.Namespace, anyName); err != nil {
		return nil, err
	}
	p := r.Params
	list, err := h.list(ctx, r.Namespace, listed{
		string(p.Labels), string(p.Provider), string(p.Region), string(p.Phase), string(p.Health), string(p.Reason),
		p.Continue, p.Limit,
	})
	return listAnswer(list), err
}

// ListAllProxies lists the Proxies of every namespace that the token is for.
func (h handlers) ListAllProxies(
	ctx context.Context, r openapi.ListAllProxiesRequestObject,
) (openapi.ListAllProxiesResponseObject, error) {
	p := r.Params
	list, err := h.list(ctx, "", listed{
		string(p.Labels), string(p.Provider), string(p.Region), string(p.Phase), string(p.Health), string(p.Reason),
		p.Continue, p.Limit,
	})
	return listAnswer(list), err
}

// listed is what a list is asked for.
type listed struct {
	labels, provider, region, phase, health, reason string
	continued                                       string
	limit                                           int
}

// list returns one page. A page goes on behind the last name of the one before, so that
// no Proxy is left out or told twice, whatever comes and goes in between.
func (h handlers) list(ctx context.Context, namespace string, l listed) (openapi.ProxyList, error) {
	keeps, err := l.filter()
	if err != nil {
		return openapi.ProxyList{}, err
	}
	behind, err := l.behind()
	if err != nil {
		return openapi.ProxyList{}, err
	}
	found, err := h.fleet.List(ctx, namespace)
	if err != nil {
		return openapi.ProxyList{}, err
	}
	grant := access.Of(ctx)
	items := make([]v1.Proxy, 0, len(found)) // an empty list is [], never null
	for _, p := range found {
		if grant.Sees(p.Metadata.Namespace, p.Metadata.Labels) && keeps(p) {
			items = append(items, redacted(p))
		}
	}
	return l.part(items, behind), nil
}

// part is what a page shows of the Proxies that fit.
func (l listed) part(found []v1.Proxy, behind string) openapi.ProxyList {
	items := slices.DeleteFunc(found, func(p v1.Proxy) bool { return keyOf(p) <= behind })
	slices.SortStableFunc(items, func(a, b v1.Proxy) int { return cmp.Compare(keyOf(a), keyOf(b)) })
	page := openapi.ProxyList{Items: items}
	if l.limit > 0 && len(items) > l.limit {
		page.Items = items[:l.limit]
		page.Continue = continueTag + base64.RawURLEncoding.EncodeToString([]byte(keyOf(items[l.limit-1])))
	}
	return page
}

// keyOf orders Proxies by namespace and then by name: no name holds what sorts before a
// space.
func keyOf(p v1.Proxy) string { return p.Metadata.Namespace + " " + p.Metadata.Name }

// continueTag begins a token, so that another kind can follow.
const continueTag = "v1."

// behind is the last key of the page before.
func (l listed) behind() (string, error) {
	if l.continued == "" {
		return "", nil
	}
	encoded, ours := strings.CutPrefix(l.continued, continueTag)
	key, err := base64.RawURLEncoding.DecodeString(encoded)
	namespace, name, two := strings.Cut(string(key), " ")
	if err != nil || !ours || !two || !v1.IsName(namespace) || !v1.IsName(name) {
		return "", &v1.FieldError{Field: "continue", Value: l.continued, Problem: "is not the continue of a list"}
	}
	return string(key), nil
}

// The choices of ?health=.
var healths = []string{"true", "false", "unknown"}

// check says what cannot be asked for.
func (l listed) check() error {
	switch {
	case l.phase != "" && !slices.Contains(v1.Phases(), v1.Phase(l.phase)):
		return oneOf("phase", l.phase, v1.Phases())
	case l.health != "" && !slices.Contains(healths, l.health):
		return oneOf("health", l.health, healths)
	case len(l.reason) > nameBytes: // the reason of a DELETE, which is a sentence, may be longer
		return tooLong("reason", l.reason, nameBytes)
	default:
		return nil
	}
}

// filter is what is left in the list.
func (l listed) filter() (keeps func(v1.Proxy) bool, err error) {
	selector, err := selectorOf(l.labels)
	if err == nil {
		err = l.check()
	}
	if err != nil {
		return nil, err
	}
	return func(p v1.Proxy) bool {
		return selector.Matches(labels.Set(p.Metadata.Labels)) && fits(l.provider, p.Spec.Provider) &&
			fits(l.region, p.Spec.Placement.Region) && fits(l.phase, string(p.Status.Phase)) &&
			fits(l.health, healthOf(p)) && (l.reason == "" || hasReason(p, l.reason))
	}, nil
}

func fits(wanted, is string) bool { return wanted == "" || wanted == is }

func healthOf(p v1.Proxy) string {
	if p.Status.Healthy == nil {
		return "unknown"
	}
	return strconv.FormatBool(*p.Status.Healthy)
}

// hasReason reports whether any condition gives a reason.
func hasReason(p v1.Proxy, reason string) bool {
	return slices.ContainsFunc(p.Status.Conditions, func(c v1.Condition) bool { return c.Reason == reason })
}
