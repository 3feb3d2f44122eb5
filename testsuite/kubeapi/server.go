// Package kubeapi is a small API server of Kubernetes for tests, with a scheduler and a
// kubelet that take some looks instead of seconds. It is client-go's object tracker
// behind HTTPS, with what that lacks: authentication, rights, selectors, pages, a Pod
// that takes a while to start and to end. Start reading at New; faults.go breaks it.
package kubeapi

import (
	"encoding/pem"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/uuid"
	"k8s.io/client-go/kubernetes/scheme"
	clienttesting "k8s.io/client-go/testing"
)

// Server answers as an API server does, over HTTPS, with what client-go's fake keeps
// objects in. What that lacks is here: authentication and rights, UIDs, selectors, pages,
// a Pod that takes a while to start and to end, and a quota.
type Server struct {
	*httptest.Server
	rules []Rule // what the token may do; deploy/kubernetes has them

	mu      sync.Mutex
	objects clienttesting.ObjectTracker
	version int
	token   string
	reads   map[string]int // of each Pod, since it was made or deleted
	used    []string       // what a rule has allowed, each once
	calls   []string
	open    int // connections
	faults  faults
}

// faults are what a test has broken.
type faults struct {
	intercept    Fault
	unauthorized func() // before a refusal
	silent       bool   // no Pod gets an address
	pageSize     int64  // at most; 0: as asked
}

// The looks that a Pod takes to start, and to be gone.
const (
	looksToStart = 2
	looksToEnd   = 3
)

// New starts a server that grants the rules, and stops it at the end of the test.
func New(t testing.TB, rules []Rule) *Server {
	t.Helper()
	s := &Server{
		objects: clienttesting.NewObjectTracker(scheme.Scheme, scheme.Codecs.UniversalDecoder()),
		reads:   map[string]int{}, token: Token, rules: rules,
	}
	s.Server = httptest.NewUnstartedServer(http.HandlerFunc(s.serve))
	s.EnableHTTP2 = true
	s.Config.ConnState = func(_ net.Conn, state http.ConnState) {
		switch state {
		case http.StateNew:
			s.set(func() { s.open++ })
		case http.StateClosed, http.StateHijacked:
			s.set(func() { s.open-- })
		default:
		}
	}
	s.StartTLS()
	t.Cleanup(s.Close)
	return s
}

// Authority is the certificate that a client trusts, as PEM.
func (s *Server) Authority() []byte {
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: s.Certificate().Raw})
}

func (s *Server) serve(w http.ResponseWriter, r *http.Request) {
	a := actionOf(r)
	s.mu.Lock()
	s.calls = append(s.calls, a.Verb+" "+a.Resource)
	token, intercept, refused := s.token, s.faults.intercept, s.faults.unauthorized
	s.mu.Unlock()
	if r.Header.Get("Authorization") != "Bearer "+token {
		if refused != nil {
			refused()
		}
		fail(w, apierrors.NewUnauthorized("Unauthorized"))
		return
	}
	if intercept != nil && intercept(w, r, a) {
		return
	}
	if !s.allowed(a) {
		fail(w, apierrors.NewForbidden(schema.GroupResource{Group: a.Group, Resource: a.Resource}, a.Name,
			fmt.Errorf("the user %q cannot %s resource %q in API group %q in the namespace %q",
				"system:serviceaccount:egressfleet:worker", a.Verb, a.Resource, a.Group, a.Namespace)))
		return
	}
	answer, err := s.answer(r, a)
	if err != nil {
		fail(w, err)
		return
	}
	encode(w, answer)
}

func (s *Server) answer(r *http.Request, a Action) (any, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch a.Verb + " " + a.Resource {
	case "get version":
		return map[string]string{"gitVersion": "v1.36.3", "major": "1", "minor": "36"}, nil
	case "get readyz":
		return "ok", nil
	case "create selfsubjectaccessreviews":
		return s.review(r)
	case "get pods":
		return s.readPod(a)
	case "list pods":
		return s.listPods(r, a)
	case "delete pods":
		return s.deletePod(r, a)
	}
	switch a.Verb {
	case "get":
		return s.objects.Get(a.gvr(), a.Namespace, a.Name)
	case "create":
		return s.create(r, a)
	case "update":
		obj, err := decode(r)
		if err != nil {
			return nil, err
		}
		return obj, s.objects.Update(a.gvr(), obj, a.Namespace)
	default:
		return nil, apierrors.NewMethodNotSupported(schema.GroupResource{Resource: a.Resource}, a.Verb)
	}
}

func (s *Server) review(r *http.Request) (any, error) {
	obj, err := decode(r)
	if err != nil {
		return nil, err
	}
	review, is := obj.(*authorizationv1.SelfSubjectAccessReview)
	if !is {
		return nil, apierrors.NewBadRequest("no review")
	}
	asked := review.Spec.ResourceAttributes
	review.Status.Allowed = granted(s.rules, Action{
		Verb: asked.Verb, Group: asked.Group, Resource: asked.Resource, Namespace: asked.Namespace, Name: asked.Name,
	})
	return review, nil
}

func (s *Server) create(r *http.Request, a Action) (any, error) {
	obj, err := decode(r)
	if err != nil {
		return nil, err
	}
	s.stamp(obj)
	if err := s.objects.Create(a.gvr(), obj, a.Namespace); err != nil {
		named, metaErr := meta.Accessor(obj)
		if metaErr != nil {
			return nil, metaErr
		}
		return nil, s.taken(a, named.GetName(), err)
	}
	if pod, is := obj.(*corev1.Pod); is {
		pod.Status.Phase = corev1.PodPending
		return pod, s.objects.Update(a.gvr(), pod, a.Namespace)
	}
	return obj, nil
}

// taken says of a name that is on its way out that it is.
func (s *Server) taken(a Action, name string, err error) error {
	found, getErr := s.objects.Get(a.gvr(), a.Namespace, name)
	if getErr != nil || !apierrors.IsAlreadyExists(err) {
		return err
	}
	if named, metaErr := meta.Accessor(found); metaErr == nil && named.GetDeletionTimestamp() != nil {
		status := apierrors.NewAlreadyExists(a.gvr().GroupResource(), name)
		status.ErrStatus.Message = "object is being deleted: " + status.ErrStatus.Message
		return status
	}
	return err
}

// stamp gives an object what the server gives it.
func (s *Server) stamp(obj runtime.Object) {
	named, err := meta.Accessor(obj)
	if err != nil {
		panic(err)
	}
	s.version++
	named.SetUID(types.UID(uuid.NewUUID()))
	named.SetCreationTimestamp(metav1.NewTime(time.Now().Truncate(time.Second)))
	named.SetResourceVersion(strconv.Itoa(s.version))
}

func (s *Server) listPods(r *http.Request, a Action) (any, error) {
	all, err := s.objects.List(a.gvr(), corev1.SchemeGroupVersion.WithKind("Pod"), a.Namespace)
	if err != nil {
		return nil, err
	}
	selector, err := labels.Parse(r.URL.Query().Get("labelSelector"))
	if err != nil {
		return nil, err
	}
	limit, _ := strconv.ParseInt(r.URL.Query().Get("limit"), 10, 64)
	if s.faults.pageSize > 0 {
		limit = min(limit, s.faults.pageSize)
	}
	list := &corev1.PodList{ListMeta: metav1.ListMeta{ResourceVersion: strconv.Itoa(s.version + 1)}}
	after := r.URL.Query().Get("continue")
	pods, is := all.(*corev1.PodList)
	if !is {
		return nil, apierrors.NewInternalError(errNoPods)
	}
	for _, pod := range pods.Items {
		if pod.Name <= after || !selector.Matches(labels.Set(pod.Labels)) {
			continue
		}
		if limit > 0 && int64(len(list.Items)) == limit {
			list.Continue = list.Items[len(list.Items)-1].Name
			break
		}
		if now := s.look(&pod); now != nil {
			list.Items = append(list.Items, *now)
		}
	}
	return list, nil
}

// Calls returns the calls that there were, such as "get pods", in their order.
func (s *Server) Calls() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]string(nil), s.calls...)
}

// Break lets a fault answer until the returned function is called.
func (s *Server) Break(f Fault) (heal func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	before := s.faults.intercept
	s.faults.intercept = f
	return func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.faults.intercept = before
	}
}

// Put stores an object as if somebody else had made it.
func (s *Server) Put(t testing.TB, a Action, obj runtime.Object) {
	t.Helper()
	s.mu.Lock()
	defer s.mu.Unlock()
	s.stamp(obj)
	require.NoError(t, s.objects.Create(a.gvr(), obj, a.Namespace))
}

// Get returns an object of the server's store.
func Get[T runtime.Object](t testing.TB, s *Server, a Action) T {
	t.Helper()
	s.mu.Lock()
	defer s.mu.Unlock()
	obj, err := s.objects.Get(a.gvr(), a.Namespace, a.Name)
	require.NoError(t, err)
	typed, is := obj.(T)
	require.True(t, is)
	return typed
}
