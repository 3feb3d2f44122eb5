//go:build linux

package kubelab

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// kwokNode is the annotation of nodes that kwok plays.
const kwokNode = "kwok.x-k8s.io/node"

// AddNode adds a node that kwok plays, in a zone, and waits until it takes Pods.
func (c *Cluster) AddNode(ctx context.Context, name, zone string) error {
	room := corev1.ResourceList{
		corev1.ResourceCPU: resource.MustParse("1000"), corev1.ResourceMemory: resource.MustParse("1Ti"),
		corev1.ResourcePods: resource.MustParse("1000"), corev1.ResourceEphemeralStorage: resource.MustParse("1Ti"),
	}
	_, err := c.Admin.CoreV1().Nodes().Create(ctx, &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{
			Name: name, Annotations: map[string]string{kwokNode: "fake"},
			Labels: map[string]string{corev1.LabelHostname: name, corev1.LabelTopologyZone: zone},
		},
		Status: corev1.NodeStatus{Capacity: room, Allocatable: room},
	}, metav1.CreateOptions{})
	if err != nil {
		return err
	}
	return c.WaitNode(ctx, name)
}
