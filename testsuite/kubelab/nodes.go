//go:build linux

package kubelab

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// WaitNode waits until a node takes Pods.
func (c *Cluster) WaitNode(ctx context.Context, name string) error {
	return c.waitNode(ctx, name, takesPods)
}

// WaitNodeLost waits until the cluster knows that a node is lost.
func (c *Cluster) WaitNodeLost(ctx context.Context, name string) error {
	return c.waitNode(ctx, name, func(n *corev1.Node) error {
		if readiness(n) != corev1.ConditionUnknown {
			return fmt.Errorf("node %s is still heard of", n.Name)
		}
		return nil
	})
}

func (c *Cluster) waitNode(ctx context.Context, name string, is func(*corev1.Node) error) error {
	ctx, cancel := context.WithTimeout(ctx, ready)
	defer cancel()
	return c.api.until(ctx, func(ctx context.Context) error {
		n, err := c.Admin.CoreV1().Nodes().Get(ctx, name, metav1.GetOptions{})
		if err != nil {
			return err
		}
		return is(n)
	})
}

func takesPods(n *corev1.Node) error {
	if readiness(n) != corev1.ConditionTrue {
		return fmt.Errorf("node %s is not ready", n.Name)
	}
	if len(n.Spec.Taints) > 0 {
		return fmt.Errorf("node %s has the taint %s", n.Name, n.Spec.Taints[0].Key)
	}
	return nil
}

func readiness(n *corev1.Node) corev1.ConditionStatus {
	for _, condition := range n.Status.Conditions {
		if condition.Type == corev1.NodeReady {
			return condition.Status
		}
	}
	return ""
}
