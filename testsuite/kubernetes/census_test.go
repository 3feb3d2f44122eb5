//go:build integration && linux

package kubernetes

import (
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/tools/cache"

	"github.com/egressfleet/egressfleet/providers"
	"github.com/egressfleet/egressfleet/testsuite/kubelab"
)

// census knows which Pods of a cluster are there, all the time, and counts a duplicate
// whenever one comes while another one of its UID is still there.
type census struct {
	mu    sync.Mutex
	there map[string]map[types.UID]bool // by the mark, then by the Pod's own UID
	born  int
}

// takeCensus begins with no Pod, and ends with the test: what is left then is counted,
// and fails it.
func takeCensus(t *testing.T, c *kubelab.Cluster) *census {
	t.Helper()
	s := &census{there: map[string]map[types.UID]bool{}}
	factory := informers.NewSharedInformerFactoryWithOptions(c.Admin, 0, informers.WithTweakListOptions(
		func(o *metav1.ListOptions) { o.LabelSelector = providers.MarkManaged }))
	pods := factory.Core().V1().Pods().Informer()
	_, err := pods.AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc: func(o any) { s.add(o) },
		UpdateFunc: func(before, now any) {
			if uidOf(before) != uidOf(now) { // what happened while nobody watched
				s.remove(before)
				s.add(now)
			}
		},
		DeleteFunc: func(o any) { s.remove(o) },
	})
	require.NoError(t, err)
	stop := make(chan struct{})
	factory.Start(stop)
	require.True(t, cache.WaitForCacheSync(stop, pods.HasSynced))
	t.Cleanup(func() {
		close(stop)
		factory.Shutdown()
		left := s.alive()
		counted.left.Add(int64(left))
		require.Zero(t, left, "Pods are left")
	})
	return s
}

func (s *census) add(o any) {
	p, ok := o.(*corev1.Pod)
	if !ok {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	mark := p.Labels[providers.MarkUID]
	if s.there[mark] == nil {
		s.there[mark] = map[types.UID]bool{}
	}
	s.there[mark][p.UID] = true
	s.born++
	if len(s.there[mark]) > 1 {
		counted.duplicates.Add(1)
	}
}

func (s *census) remove(o any) {
	if gone, ok := o.(cache.DeletedFinalStateUnknown); ok {
		o = gone.Obj
	}
	p, ok := o.(*corev1.Pod)
	if !ok {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.there[p.Labels[providers.MarkUID]], p.UID)
}

// alive is how many Pods are there.
func (s *census) alive() (n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, pods := range s.there {
		n += len(pods)
	}
	return n
}

// births is how many Pods there have been.
func (s *census) births() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.born
}

func uidOf(o any) types.UID {
	if p, ok := o.(*corev1.Pod); ok {
		return p.UID
	}
	return ""
}
