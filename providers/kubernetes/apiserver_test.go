package kubernetes_test

import (
	"encoding/json"
	"encoding/pem"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
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

// apiServer answers as an API server does, over HTTPS, with what client-go's fake keeps
// objects in. What that lacks is here: authentication and rights, UIDs, selectors, pages,
// a Pod that takes a while to start and to end, and a quota.
type apiServer struct {
	*httptest.Server
	rules []rule // what the token may do; deploy/kubernetes has them

	mu      sync.Mutex
	objects clienttesting.ObjectTracker
	version int
	token   string
	reads   map[string]int // of each Pod, since it was made or deleted
	used    map[string]bool
	calls   []string
	faults  faults
}

// faults are what a test has broken.
type faults struct {
	intercept func(w http.ResponseWriter, r *http.Request, a action) bool // true: it has answered
	silent    bool                                                        // no Pod gets an address
	pageSize  int64                                                       // at most; 0: as asked
}

// action is what a request does.
type action struct{ verb, group, resource, namespace, name string }

// The looks that a Pod takes to start, and to be gone.
const (
	looksToStart = 2
	looksToEnd   = 3
)

func newAPIServer(t *testing.T) *apiServer {
	t.Helper()
	s := &apiServer{
		objects: clienttesting.NewObjectTracker(scheme.Scheme, scheme.Codecs.UniversalDecoder()),
		reads:   map[string]int{}, used: map[string]bool{}, token: "first-token", rules: providerRules(t),
	}
	s.Server = httptest.NewUnstartedServer(http.HandlerFunc(s.serve))
	s.EnableHTTP2 = true
	s.StartTLS()
	t.Cleanup(s.Close)
	return s
}

// authority is the certificate that a client trusts, as PEM.
func (s *apiServer) authority() []byte {
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: s.Certificate().Raw})
}

func (s *apiServer) serve(w http.ResponseWriter, r *http.Request) {
	a := actionOf(r)
	s.mu.Lock()
	s.calls = append(s.calls, a.verb+" "+a.resource)
	token, intercept := s.token, s.faults.intercept
	s.mu.Unlock()
	if r.Header.Get("Authorization") != "Bearer "+token {
		fail(w, apierrors.NewUnauthorized("Unauthorized"))
		return
	}
	if intercept != nil && intercept(w, r, a) {
		return
	}
	if !s.allowed(a) {
		fail(w, apierrors.NewForbidden(schema.GroupResource{Group: a.group, Resource: a.resource}, a.name,
			fmt.Errorf("User %q cannot %s resource %q in API group %q in the namespace %q",
				"system:serviceaccount:egressfleet:worker", a.verb, a.resource, a.group, a.namespace)))
		return
	}
	answer, err := s.answer(r, a)
	if err != nil {
		fail(w, err)
		return
	}
	encode(w, answer)
}

// actionOf reads a path such as /api/v1/namespaces/egress/pods/name.
func actionOf(r *http.Request) (a action) {
	parts := strings.Split(strings.Trim(r.URL.Path, "/"), "/")
	if parts[0] == "version" {
		return action{verb: "get", resource: "version"}
	}
	rest := parts[2:]
	if parts[0] == "apis" {
		a.group, rest = parts[1], parts[3:]
	}
	if rest[0] == "namespaces" && len(rest) > 2 {
		a.namespace, rest = rest[1], rest[2:]
	}
	a.resource = rest[0]
	if len(rest) > 1 {
		a.name = rest[1]
	}
	a.verb = map[string]string{"POST": "create", "PUT": "update", "DELETE": "delete", "GET": "get"}[r.Method]
	if a.verb == "get" && a.name == "" {
		a.verb = "list"
	}
	return a
}

func (a action) gvr() schema.GroupVersionResource {
	return schema.GroupVersionResource{Group: a.group, Version: "v1", Resource: a.resource}
}

func (s *apiServer) answer(r *http.Request, a action) (any, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch a.verb + " " + a.resource {
	case "get version":
		return map[string]string{"gitVersion": "v1.36.3", "major": "1", "minor": "36"}, nil
	case "create selfsubjectaccessreviews":
		return s.review(r)
	case "get pods":
		return s.readPod(a)
	case "list pods":
		return s.listPods(r, a)
	case "delete pods":
		return s.deletePod(r, a)
	}
	switch a.verb {
	case "get":
		return s.objects.Get(a.gvr(), a.namespace, a.name)
	case "create":
		return s.create(r, a)
	case "update":
		obj, err := decode(r)
		if err != nil {
			return nil, err
		}
		return obj, s.objects.Update(a.gvr(), obj, a.namespace)
	default:
		return nil, apierrors.NewMethodNotSupported(schema.GroupResource{Resource: a.resource}, a.verb)
	}
}

func (s *apiServer) review(r *http.Request) (any, error) {
	obj, err := decode(r)
	if err != nil {
		return nil, err
	}
	review := obj.(*authorizationv1.SelfSubjectAccessReview)
	asked := review.Spec.ResourceAttributes
	review.Status.Allowed = granted(s.rules, action{
		verb: asked.Verb, group: asked.Group, resource: asked.Resource, namespace: asked.Namespace, name: asked.Name,
	})
	return review, nil
}

func (s *apiServer) create(r *http.Request, a action) (any, error) {
	obj, err := decode(r)
	if err != nil {
		return nil, err
	}
	s.stamp(obj)
	if err := s.objects.Create(a.gvr(), obj, a.namespace); err != nil {
		named, metaErr := meta.Accessor(obj)
		if metaErr != nil {
			return nil, metaErr
		}
		return nil, s.taken(a, named.GetName(), err)
	}
	if pod, is := obj.(*corev1.Pod); is {
		pod.Status.Phase = corev1.PodPending
		return pod, s.objects.Update(a.gvr(), pod, a.namespace)
	}
	return obj, nil
}

// taken says of a name that is on its way out that it is.
func (s *apiServer) taken(a action, name string, err error) error {
	found, getErr := s.objects.Get(a.gvr(), a.namespace, name)
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
func (s *apiServer) stamp(obj runtime.Object) {
	named, err := meta.Accessor(obj)
	if err != nil {
		panic(err)
	}
	s.version++
	named.SetUID(types.UID(uuid.NewUUID()))
	named.SetCreationTimestamp(metav1.NewTime(time.Now().Truncate(time.Second)))
	named.SetResourceVersion(strconv.Itoa(s.version))
}

func (s *apiServer) listPods(r *http.Request, a action) (any, error) {
	all, err := s.objects.List(a.gvr(), corev1.SchemeGroupVersion.WithKind("Pod"), a.namespace)
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
	for _, pod := range all.(*corev1.PodList).Items {
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

func decode(r *http.Request) (runtime.Object, error) {
	raw, err := io.ReadAll(r.Body)
	if err != nil {
		return nil, apierrors.NewBadRequest(err.Error())
	}
	obj, _, err := scheme.Codecs.UniversalDeserializer().Decode(raw, nil, nil)
	return obj, err
}

func encode(w http.ResponseWriter, answer any) {
	w.Header().Set("Content-Type", "application/json")
	obj, is := answer.(runtime.Object)
	if !is {
		_ = json.NewEncoder(w).Encode(answer)
		return
	}
	version := corev1.SchemeGroupVersion
	switch obj.(type) {
	case *networkingv1.NetworkPolicy:
		version = networkingv1.SchemeGroupVersion
	case *authorizationv1.SelfSubjectAccessReview:
		version = authorizationv1.SchemeGroupVersion
	}
	_ = scheme.Codecs.LegacyCodec(version).Encode(obj, w)
}

func fail(w http.ResponseWriter, err error) {
	status := apierrors.NewInternalError(err).Status()
	if known, is := err.(apierrors.APIStatus); is {
		status = known.Status()
	}
	status.Kind, status.APIVersion = "Status", "v1"
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(int(status.Code))
	_ = json.NewEncoder(w).Encode(status)
}

// seen returns which calls there were, without repetition.
func (s *apiServer) seen() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]string(nil), s.calls...)
}

// breakWith lets a fault answer until the returned function is called.
func (s *apiServer) breakWith(f func(http.ResponseWriter, *http.Request, action) bool) (heal func()) {
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

// put stores an object as if somebody else had made it.
func (s *apiServer) put(t *testing.T, a action, obj runtime.Object) {
	t.Helper()
	s.mu.Lock()
	defer s.mu.Unlock()
	s.stamp(obj)
	require.NoError(t, s.objects.Create(a.gvr(), obj, a.namespace))
}
