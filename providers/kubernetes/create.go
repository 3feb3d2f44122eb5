package kubernetes

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/egressfleet/egressfleet/providers"
)

// create looks first: a quota is counted before the name, so that a repetition would be
// refused for ever by a quota that the Pod itself has used up.
func (p *Provider) create(ctx context.Context, req providers.CreateRequest) error {
	if err := checkRequest(p.set, req); err != nil {
		return err
	}
	at := placeOf(p.set, req)
	pod, err := p.readPod(ctx, at)
	switch {
	case err == nil:
		return adopt(pod, req)
	case !missing(err, "pods", at.name):
		return err
	case req.Installation != p.installation: // no listing of this provider would show it
		return permanent("installation: %q is not that of the provider, %q", req.Installation, p.installation)
	}
	owner, err := p.ensureOwner(ctx, at.namespace)
	if err != nil {
		return err
	}
	if p.set.policy {
		if err := p.ensurePolicy(ctx, at.namespace, owner); err != nil {
			return err
		}
	}
	return p.makePod(ctx, plan{provider: p.name, installation: p.installation, set: p.set, owner: owner, req: req})
}

func (p *Provider) makePod(ctx context.Context, from plan) error {
	want, err := buildPod(from)
	if err != nil {
		return err
	}
	at := place{want.Namespace, want.Name}
	made, err := call(ctx, p, func(ctx context.Context, c api) (*corev1.Pod, error) {
		return c.Pods(at.namespace).Create(ctx, want, metav1.CreateOptions{})
	})
	if apierrors.IsAlreadyExists(err) {
		return p.adoptTaken(ctx, at, from.req)
	}
	if err != nil {
		return err
	}
	if err := checkPod(made, at); err != nil {
		return err
	}
	return p.keepsMarks(ctx, made, from.req)
}

// adoptTaken looks at the Pod that took the name between the look and the create. The
// server gives the same reason for one that is there and for one on its way out.
func (p *Provider) adoptTaken(ctx context.Context, at place, req providers.CreateRequest) error {
	pod, err := p.readPod(ctx, at)
	if missing(err, "pods", at.name) {
		return transient("the name was taken a moment ago, and is free now: %w", err)
	}
	if err != nil {
		return err
	}
	return adopt(pod, req)
}

// adopt takes a Pod that carries the name for the one that was asked for, if its marks
// say so and it is not on its way out.
func adopt(pod *corev1.Pod, req providers.CreateRequest) error {
	if !owned(pod, req) {
		return permanent("%w", &providers.ForeignError{
			Found:  providers.Holder{UID: pod.Labels[providers.MarkUID], Installation: pod.Labels[providers.MarkInstallation]},
			Wanted: providers.Holder{UID: req.UID, Installation: req.Installation},
		})
	}
	if pod.DeletionTimestamp != nil {
		return transient("the Pod of before is still being deleted")
	}
	return nil
}

func owned(pod *corev1.Pod, req providers.CreateRequest) bool {
	return pod.Labels[providers.MarkManaged] == providers.MarkManagedYes &&
		pod.Labels[providers.MarkUID] == req.UID && pod.Labels[providers.MarkInstallation] == req.Installation
}

// keepsMarks takes a Pod away whose marks an admission webhook has changed: no listing
// would ever find it.
func (p *Provider) keepsMarks(ctx context.Context, pod *corev1.Pod, req providers.CreateRequest) error {
	if owned(pod, req) {
		return nil
	}
	if err := p.removePod(ctx, pod, nil); err != nil {
		return err
	}
	return permanent("an admission webhook of the cluster changes the labels %s, %s or %s of Pods: exempt them",
		providers.MarkManaged, providers.MarkUID, providers.MarkInstallation)
}
