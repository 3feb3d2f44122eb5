package kubernetes

import (
	"fmt"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/egressfleet/egressfleet/providers"
)

// lostAfter is how long after its grace period a Pod that is being deleted counts as
// held up: the kubelet needs seconds. Deleting it again is then worth a call.
const lostAfter = time.Minute

// observe is what a Pod shows, at a moment.
func observe(pod *corev1.Pod, now time.Time) providers.Instance {
	i := providers.Instance{
		ID:           place{pod.Namespace, pod.Name}.id(),
		UID:          pod.Labels[providers.MarkUID],
		Installation: pod.Labels[providers.MarkInstallation],
		Owner:        pod.Annotations[providers.MarkOwner],
		SpecMark:     pod.Annotations[providers.MarkSpec],
		CreatedAt:    pod.CreationTimestamp.UTC(),
	}
	if pod.CreationTimestamp.IsZero() {
		i.CreatedAt = time.Time{}
	}
	i.State, i.Reason = stateOf(pod)
	if i.State == providers.StateRunning {
		i.IP = addressOf(pod)
	}
	i.Deleting = pod.DeletionTimestamp != nil && !overdue(pod, now)
	return i
}

// stateOf is the table of states. A Pod that is being deleted never comes back, whatever
// its phase still says.
func stateOf(pod *corev1.Pod) (providers.State, string) {
	if pod.DeletionTimestamp != nil {
		return providers.StateTerminated, dyingReason(pod)
	}
	switch pod.Status.Phase {
	case "", corev1.PodPending:
		return providers.StateProvisioning, pendingReason(pod)
	case corev1.PodRunning:
		return runningState(pod)
	case corev1.PodSucceeded:
		return providers.StateTerminated, words("Succeeded", "the proxy has ended by itself")
	case corev1.PodFailed:
		return providers.StateTerminated, words(orElse(pod.Status.Reason, "Failed"), pod.Status.Message)
	case corev1.PodUnknown:
		return providers.StateTerminated, words("Unknown", "the node does not tell the state of the Pod")
	default:
		return providers.StateStopped, words(string(pod.Status.Phase), "a phase that this provider does not know")
	}
}

// runningState wants a proxy that takes connections. One that does not may again, such
// as after a restart, or when its node comes back.
func runningState(pod *corev1.Pod) (providers.State, string) {
	ready := conditionOf(pod, corev1.PodReady)
	switch {
	case addressOf(pod) == "":
		return providers.StateProvisioning, words("NoAddress", "the Pod runs, and has no address yet")
	case ready != nil && ready.Status == corev1.ConditionTrue:
		return providers.StateRunning, ""
	default:
		return providers.StateProvisioning, unreadyReason(pod, ready)
	}
}

// addressOf is the primary address: the first of podIPs, which podIP repeats.
func addressOf(pod *corev1.Pod) string {
	if len(pod.Status.PodIPs) > 0 {
		return pod.Status.PodIPs[0].IP
	}
	return pod.Status.PodIP
}

func pendingReason(pod *corev1.Pod) string {
	if reason := waitingReason(pod); reason != "" {
		return reason
	}
	if c := conditionOf(pod, corev1.PodScheduled); c != nil && c.Status != corev1.ConditionTrue {
		return words(c.Reason, c.Message)
	}
	return words(orElse(pod.Status.Reason, "Pending"), pod.Status.Message)
}

func unreadyReason(pod *corev1.Pod, ready *corev1.PodCondition) string {
	if pod.Status.Reason != "" { // NodeLost, where a node has been silent
		return words(pod.Status.Reason, pod.Status.Message)
	}
	if reason := waitingReason(pod); reason != "" {
		return reason
	}
	if ready != nil {
		return words(orElse(ready.Reason, "NotReady"), ready.Message)
	}
	return words("NotReady", "the proxy takes no connections yet")
}

// waitingReason is why a container does not run: ImagePullBackOff, CrashLoopBackOff and
// the like, with what ended it before.
func waitingReason(pod *corev1.Pod) string {
	for _, list := range [][]corev1.ContainerStatus{pod.Status.InitContainerStatuses, pod.Status.ContainerStatuses} {
		for _, s := range list {
			if s.State.Waiting == nil || s.State.Waiting.Reason == "" {
				continue
			}
			reason := words(s.State.Waiting.Reason, s.State.Waiting.Message)
			if last := s.LastTerminationState.Terminated; last != nil {
				reason += fmt.Sprintf(" (ended before: %s, exit status %d)", orElse(last.Reason, "Error"), last.ExitCode)
			}
			return reason
		}
	}
	return ""
}

func dyingReason(pod *corev1.Pod) string {
	reason := "the Pod is being deleted"
	if c := conditionOf(pod, corev1.DisruptionTarget); c != nil && c.Status == corev1.ConditionTrue {
		reason += ", " + words(c.Reason, c.Message)
	}
	if len(pod.Finalizers) > 0 {
		reason += ", and held by the finalizers " + strings.Join(pod.Finalizers, ", ")
	}
	return words("Deleting", reason)
}

// overdue reports whether a Pod that is being deleted should be gone by now. The
// timestamp is that of the request and the grace period.
func overdue(pod *corev1.Pod, now time.Time) bool {
	return pod.DeletionTimestamp != nil && now.After(pod.DeletionTimestamp.Add(lostAfter))
}

func conditionOf(pod *corev1.Pod, kind corev1.PodConditionType) *corev1.PodCondition {
	for i, c := range pod.Status.Conditions {
		if c.Type == kind {
			return &pod.Status.Conditions[i]
		}
	}
	return nil
}

// words joins a reason of the backend and its message.
func words(reason, message string) string {
	switch {
	case message == "":
		return reason
	case reason == "":
		return message
	default:
		return reason + ": " + message
	}
}
