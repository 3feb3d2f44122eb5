package kubernetes

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"time"

	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/version"

	"github.com/egressfleet/egressfleet/providers"
)

// checkTime bounds a check of all namespaces.
const checkTime = 15 * time.Second

// right is a verb on a resource that the provider needs in a namespace.
type right struct{ group, resource, verb, name string }

func (r right) String() string { return r.verb + " " + r.resource }

// rightsOf is everything that a create, a look, a delete and a listing need.
func rightsOf(installation, provider string, policy bool) []right {
	rights := []right{
		{"", "pods", "create", ""},
		{"", "pods", "get", ""},
		{"", "pods", "list", ""},
		{"", "pods", "delete", ""},
		{"", "configmaps", "create", ""},
		{"", "configmaps", "get", ownerName(installation)},
	}
	if !policy {
		return rights
	}
	const group, resource = "networking.k8s.io", "networkpolicies"
	name := policyName(installation, provider)
	return append(rights, right{group, resource, "create", ""}, right{group, resource, "get", name},
		right{group, resource, "update", name})
}

// Check tells for each namespace whether the API server answers, and whether it lets
// this provider do what it does there. It changes nothing.
func (p *Provider) Check(ctx context.Context) []providers.TargetStatus {
	ctx, cancel := context.WithTimeout(ctx, checkTime)
	defer cancel()
	server, err := p.version(ctx)
	all := make([]providers.TargetStatus, len(p.set.namespaces))
	for i, namespace := range p.set.namespaces {
		if err != nil {
			all[i] = statusOf(namespace, err)
			continue
		}
		all[i] = p.checkNamespace(ctx, namespace)
		if all[i].Details == nil {
			all[i].Details = map[string]string{}
		}
		all[i].Details["version"] = server
	}
	return all
}

func (p *Provider) version(ctx context.Context) (string, error) {
	raw, err := call(ctx, p, func(ctx context.Context, c api) ([]byte, error) {
		return c.Raw(ctx, "/version")
	})
	if err != nil {
		return "", err
	}
	var info version.Info
	if json.Unmarshal(raw, &info) != nil || info.GitVersion == "" {
		return "", transient("the answer to /version is none of an API server")
	}
	return info.GitVersion, nil
}

// checkNamespace asks for every right, and lists one Pod, which proves reading.
func (p *Provider) checkNamespace(ctx context.Context, namespace string) providers.TargetStatus {
	var denied []string
	details := map[string]string{}
	for _, r := range rightsOf(p.installation, p.name, p.set.policy) {
		allowed, err := p.may(ctx, namespace, r)
		if err != nil {
			return statusOf(namespace, err)
		}
		word := "allowed"
		if !allowed {
			word = "denied"
			denied = append(denied, r.String())
		}
		details[r.String()] = word
	}
	if len(denied) > 0 {
		return providers.TargetStatus{
			Target: namespace, Reason: providers.ReasonForbidden, Details: details,
			Message: "not allowed: " + strings.Join(denied, ", ") + "; the guide has the Role",
		}
	}
	if err := p.listOne(ctx, namespace); err != nil {
		return statusOf(namespace, err)
	}
	return providers.TargetStatus{Target: namespace, Ready: true, Reason: providers.ReasonReachable, Details: details}
}

func (p *Provider) may(ctx context.Context, namespace string, r right) (bool, error) {
	review := &authorizationv1.SelfSubjectAccessReview{Spec: authorizationv1.SelfSubjectAccessReviewSpec{
		ResourceAttributes: &authorizationv1.ResourceAttributes{
			Namespace: namespace, Group: r.group, Resource: r.resource, Verb: r.verb, Name: r.name,
		},
	}}
	return call(ctx, p, func(ctx context.Context, c api) (bool, error) {
		answer, err := c.SelfSubjectAccessReviews().Create(ctx, review, metav1.CreateOptions{})
		return err == nil && answer.Status.Allowed, err
	})
}

func (p *Provider) listOne(ctx context.Context, namespace string) error {
	_, err := call(ctx, p, func(ctx context.Context, c api) (*corev1.PodList, error) {
		return c.Pods(namespace).List(ctx, metav1.ListOptions{LabelSelector: selectorOf(p.installation), Limit: 1})
	})
	return err
}

func statusOf(namespace string, err error) providers.TargetStatus {
	return providers.TargetStatus{Target: namespace, Reason: reasonOf(err), Message: hinted(err).Error()}
}

func reasonOf(err error) string {
	status, answered := errors.AsType[*apierrors.StatusError](err)
	switch {
	case apierrors.IsUnauthorized(err):
		return providers.ReasonUnauthorized
	case apierrors.IsForbidden(err):
		return providers.ReasonForbidden
	case answered && !fromElsewhere(status.Status()):
		return providers.ReasonAPIError
	case errors.Is(err, context.DeadlineExceeded), errors.Is(err, context.Canceled):
		return providers.ReasonTimeout
	default:
		return providers.ReasonUnreachable
	}
}
