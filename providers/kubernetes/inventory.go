package kubernetes

import (
	"context"
	"log/slog"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/egressfleet/egressfleet/providers"
)

const (
	pageSize = 250
	// listings is how often a listing begins anew, once its pages have expired.
	listings = 3
)

// Inventory lists the Pods of this installation in every namespace that Create may use
// or has used. A namespace that cannot be listed is named in Omitted; it fails where
// none can. There are no leftovers: nothing is made per instance beside its Pod.
func (p *Provider) Inventory(ctx context.Context) (providers.Inventory, error) {
	var all providers.Inventory
	failed := map[string]error{}
	for _, namespace := range p.set.namespaces {
		pods, err := p.listPods(ctx, namespace)
		if err != nil {
			failed[namespace] = err
			all.Omitted = append(all.Omitted, namespace)
			continue
		}
		for i := range pods {
			all.Instances = append(all.Instances, observe(&pods[i], p.now()))
		}
	}
	if len(all.Omitted) == len(p.set.namespaces) {
		return providers.Inventory{}, p.fail(ctx, providers.OpList, "", failed[all.Omitted[0]])
	}
	for _, namespace := range all.Omitted {
		p.logger(ctx).LogAttrs(ctx, slog.LevelWarn, "kubernetes list leaves a namespace out",
			slog.String("namespace", namespace), slog.String("error", hinted(failed[namespace]).Error()))
	}
	p.logger(ctx).LogAttrs(ctx, providers.LevelOutcome, "kubernetes list", slog.Int("instances", len(all.Instances)),
		slog.String("omitted", strings.Join(all.Omitted, ",")))
	return all, nil
}

// listPods returns all pages of a namespace or an error, never some of them.
func (p *Provider) listPods(ctx context.Context, namespace string) (pods []corev1.Pod, err error) {
	for range listings {
		pods, err = p.listPages(ctx, namespace)
		if !apierrors.IsResourceExpired(err) {
			return pods, err
		}
	}
	return nil, err
}

func (p *Provider) listPages(ctx context.Context, namespace string) (pods []corev1.Pod, _ error) {
	options := metav1.ListOptions{LabelSelector: selectorOf(p.installation), Limit: pageSize}
	for {
		page, err := call(ctx, p, func(ctx context.Context, c api) (*corev1.PodList, error) {
			return c.Pods(namespace).List(ctx, options)
		})
		if err != nil {
			return nil, err
		}
		if page.ResourceVersion == "" {
			return nil, transient("the answer is no list of Pods in %q", namespace)
		}
		for _, pod := range page.Items {
			if p.ours(&pod) { // whatever a selector was read as
				pods = append(pods, pod)
			}
		}
		if options.Continue = page.Continue; options.Continue == "" {
			return pods, nil
		}
	}
}

func (p *Provider) ours(pod *corev1.Pod) bool {
	return pod.Labels[providers.MarkManaged] == providers.MarkManagedYes &&
		pod.Labels[providers.MarkInstallation] == p.installation
}

func selectorOf(installation string) string {
	return metav1.FormatLabelSelector(&metav1.LabelSelector{MatchLabels: ownLabels(installation)})
}
