package kubeapi

import (
	"encoding/json"
	"fmt"
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// What a scheduler and a kubelet would do. Time is counted in looks, so that a busy
// machine changes nothing.

// PodIn names a Pod.
func PodIn(namespace, name string) Action {
	return Action{Resource: "pods", Namespace: namespace, Name: name}
}

// look moves a Pod on and returns it; nil once it is gone.
func (s *Server) look(pod *corev1.Pod) *corev1.Pod {
	key, at := pod.Namespace+"/"+pod.Name, PodIn(pod.Namespace, pod.Name)
	s.reads[key]++
	switch {
	case pod.DeletionTimestamp != nil && !held(pod) && s.reads[key] >= looksToEnd:
		delete(s.reads, key)
		if err := s.objects.Delete(at.gvr(), at.Namespace, at.Name); err != nil {
			panic(err)
		}
		return nil
	case pod.DeletionTimestamp == nil && pod.Status.Phase == corev1.PodPending && s.reads[key] >= looksToStart:
		s.start(pod)
		if err := s.objects.Update(at.gvr(), pod, at.Namespace); err != nil {
			panic(err)
		}
	}
	return pod
}

// LostNode is a node whose kubelet does not answer.
const LostNode = "lost"

func held(pod *corev1.Pod) bool { return len(pod.Finalizers) > 0 || pod.Spec.NodeName == LostNode }

func (s *Server) start(pod *corev1.Pod) {
	pod.Status.Phase = corev1.PodRunning
	pod.Spec.NodeName = orNode(pod.Spec.NodeName)
	if s.faults.silent {
		pod.Status.Phase = corev1.PodPending
		return
	}
	s.version++
	ip := fmt.Sprintf("10.244.%d.%d", s.version/250%250, 1+s.version%250)
	pod.Status.PodIP, pod.Status.PodIPs = ip, []corev1.PodIP{{IP: ip}}
	pod.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}}
}

func orNode(name string) string {
	if name == "" {
		return "node-1"
	}
	return name
}

func (s *Server) readPod(a Action) (any, error) {
	obj, err := s.objects.Get(a.gvr(), a.Namespace, a.Name)
	if err != nil {
		return nil, err
	}
	if pod, is := obj.(*corev1.Pod); is {
		if pod = s.look(pod); pod != nil {
			return pod, nil
		}
	}
	return nil, apierrors.NewNotFound(a.gvr().GroupResource(), a.Name)
}

func (s *Server) deletePod(r *http.Request, a Action) (any, error) {
	var options metav1.DeleteOptions
	if err := json.NewDecoder(r.Body).Decode(&options); err != nil {
		return nil, apierrors.NewBadRequest(err.Error())
	}
	obj, err := s.objects.Get(a.gvr(), a.Namespace, a.Name)
	if err != nil {
		return nil, err
	}
	pod, is := obj.(*corev1.Pod)
	if !is {
		return nil, apierrors.NewInternalError(errNoPods)
	}
	if p := options.Preconditions; p != nil && p.UID != nil && *p.UID != pod.UID {
		return nil, apierrors.NewConflict(a.gvr().GroupResource(), a.Name,
			fmt.Errorf("invalid object: Precondition failed: UID in precondition: %s, UID in object meta: %s", *p.UID, pod.UID))
	}
	if g := options.GracePeriodSeconds; g != nil && *g == 0 && len(pod.Finalizers) == 0 {
		return pod, s.objects.Delete(a.gvr(), a.Namespace, a.Name)
	}
	if pod.DeletionTimestamp == nil {
		s.reads[a.Namespace+"/"+a.Name] = 0
		grace := int64(10)
		pod.DeletionGracePeriodSeconds = &grace
		pod.DeletionTimestamp = &metav1.Time{Time: time.Now().Add(time.Duration(grace) * time.Second)}
		err = s.objects.Update(a.gvr(), pod, a.Namespace)
	}
	return pod, err
}

// Change does something to a Pod behind the provider's back.
func (s *Server) Change(t testing.TB, namespace, name string, do func(*corev1.Pod)) {
	t.Helper()
	s.mu.Lock()
	defer s.mu.Unlock()
	at := PodIn(namespace, name)
	obj, err := s.objects.Get(at.gvr(), namespace, name)
	require.NoError(t, err)
	pod, is := obj.(*corev1.Pod)
	require.True(t, is)
	do(pod)
	require.NoError(t, s.objects.Update(at.gvr(), pod, namespace))
}

// Pods returns all Pods, without moving them on.
func (s *Server) Pods(t testing.TB) []corev1.Pod {
	t.Helper()
	s.mu.Lock()
	defer s.mu.Unlock()
	list, err := s.objects.List(PodIn("", "").gvr(), corev1.SchemeGroupVersion.WithKind("Pod"), "")
	require.NoError(t, err)
	pods, is := list.(*corev1.PodList)
	require.True(t, is)
	return pods.Items
}
