package kubernetes

import (
	"context"
	"log/slog"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/egressfleet/egressfleet/providers"
)

// delete names the Pod that it has seen by its UID, so that one which got the name
// meanwhile stays.
func (p *Provider) delete(ctx context.Context, at place) error {
	pod, err := p.readPod(ctx, at)
	if missing(err, "pods", at.name) {
		return nil
	}
	if err != nil {
		return err
	}
	if pod.Labels[providers.MarkManaged] != providers.MarkManagedYes {
		return permanent("the Pod has the label %s=%q: no fleet has made it, and it stays",
			providers.MarkManaged, pod.Labels[providers.MarkManaged])
	}
	if pod.DeletionTimestamp == nil {
		return p.removePod(ctx, pod, nil)
	}
	return p.deleteLost(ctx, pod)
}

// deleteLost ends a Pod whose node is gone for good: nobody else confirms its end. A
// node that is only silent may come back with the proxy still running, and is waited for.
func (p *Provider) deleteLost(ctx context.Context, pod *corev1.Pod) error {
	if !overdue(pod, p.now()) || pod.Spec.NodeName == "" {
		return nil
	}
	_, err := call(ctx, p, func(ctx context.Context, c api) (*corev1.Node, error) {
		return c.Nodes().Get(ctx, pod.Spec.NodeName, metav1.GetOptions{})
	})
	if missing(err, "nodes", pod.Spec.NodeName) {
		return p.removePod(ctx, pod, new(int64(0)))
	}
	why := "its node is there"
	if err != nil {
		why = err.Error()
	}
	p.logger(ctx).LogAttrs(ctx, providers.LevelOutcome, "kubernetes delete waits for a node",
		slog.String("providerID", place{pod.Namespace, pod.Name}.id()), slog.String("node", pod.Spec.NodeName),
		slog.String("why", why))
	return nil
}

// removePod asks for the end of this very Pod. grace in seconds; nil is the Pod's own.
func (p *Provider) removePod(ctx context.Context, pod *corev1.Pod, grace *int64) error {
	_, err := call(ctx, p, func(ctx context.Context, c api) (struct{}, error) {
		return struct{}{}, c.Pods(pod.Namespace).Delete(ctx, pod.Name, metav1.DeleteOptions{
			GracePeriodSeconds: grace, Preconditions: &metav1.Preconditions{UID: &pod.UID},
		})
	})
	if missing(err, "pods", pod.Name) || apierrors.IsConflict(err) {
		return nil // it is gone; another Pod may have its name
	}
	return err
}
