package kubernetes_test

import (
	"context"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"github.com/egressfleet/egressfleet/providers"
	"github.com/egressfleet/egressfleet/providers/kubernetes"
	"github.com/egressfleet/egressfleet/testsuite/providertest"
)

// elsewhere is a second namespace, which the machine type "far" leads to.
const (
	elsewhere = "far-egress"
	farType   = "far"
	secret    = "first-token"
)

// lab is a provider before an API server of its own.
type lab struct {
	providers.Provider
	server     *apiServer
	cfg        kubernetes.Config
	kubeconfig string
}

func newLab(t *testing.T, change ...func(*kubernetes.Config)) *lab {
	t.Helper()
	l := &lab{server: newAPIServer(t), kubeconfig: filepath.Join(t.TempDir(), "kubeconfig")}
	l.writeKubeconfig(t, l.server.token)
	l.cfg = kubernetes.Config{
		Kubeconfig: l.kubeconfig, Namespace: namespace, ClusterRanges: []string{"10.244.0.0/16"}, QPS: 10000, Burst: 10000,
		MachineTypes: map[string]kubernetes.MachineType{farType: {
			Namespace: elsewhere,
			Requests:  map[string]string{"cpu": "10m", "memory": "32Mi"},
			Limits:    map[string]string{"cpu": "1", "memory": "64Mi"},
		}},
	}
	for _, c := range change {
		c(&l.cfg)
	}
	l.Provider = l.open(t, installation)
	return l
}

func (l *lab) open(t *testing.T, installation string) *kubernetes.Provider {
	t.Helper()
	p, err := kubernetes.New(t.Context(), providerName, installation, l.cfg)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, p.Close()) })
	return p
}

func (l *lab) writeKubeconfig(t *testing.T, token string) {
	t.Helper()
	cfg := clientcmdapi.NewConfig()
	cfg.Clusters["c"] = &clientcmdapi.Cluster{Server: l.server.URL, CertificateAuthorityData: l.server.authority()}
	cfg.AuthInfos["u"] = &clientcmdapi.AuthInfo{Token: token}
	cfg.Contexts["x"] = &clientcmdapi.Context{Cluster: "c", AuthInfo: "u"}
	cfg.CurrentContext = "x"
	require.NoError(t, clientcmd.WriteToFile(*cfg, l.kubeconfig))
}

func request(uid string) providers.CreateRequest {
	return providers.CreateRequest{
		Name: providers.NameFromUID(uid), UID: uid, Attempt: 1, Installation: installation,
		Owner: "default/mine", SpecMark: `{"port":3128}`, Port: 3128,
	}
}

// labs finds the lab of a provider that the suite was given.
type labs struct{ all sync.Map }

func (m *labs) open(t *testing.T) providers.Provider {
	l := newLab(t)
	m.all.Store(l.Provider, l)
	return l.Provider
}

func (m *labs) of(t *testing.T, p providers.Provider) *lab {
	t.Helper()
	l, ok := m.all.Load(p)
	require.True(t, ok)
	return l.(*lab)
}

// hooks are what a test can do to the API server.
func (m *labs) hooks() providertest.Lab {
	lab := providertest.Lab{
		Reopen: func(t *testing.T, p providers.Provider) providers.Provider {
			return m.again(t, p, installation)
		},
		Neighbour: func(t *testing.T, p providers.Provider, other string) providers.Provider {
			return m.again(t, p, other)
		},
		Plant: func(t *testing.T, p providers.Provider) []string { return m.of(t, p).plant(t) },
		Squat: func(t *testing.T, p providers.Provider, req providers.CreateRequest, missing string) {
			pod := marked(req)
			delete(pod.Labels, missing)
			m.of(t, p).server.put(t, podsIn(namespace, req.Name), pod)
		},
		Leftovers: func(t *testing.T, p providers.Provider, uid string) (left []string) {
			for _, pod := range m.of(t, p).server.pods(t) {
				if pod.Name == providers.NameFromUID(uid) {
					left = append(left, pod.Name)
				}
			}
			return left
		},
		Backend: func(_ *testing.T, p providers.Provider, see func(context.Context)) {
			kubernetes.Watch(p.(*kubernetes.Provider), see)
		},
		Part: &providertest.Part{
			Name:  elsewhere,
			Place: func(req *providers.CreateRequest) { req.Placement.MachineType = farType },
			Cut: func(t *testing.T, p providers.Provider) func() {
				return m.of(t, p).server.breakWith(onlyIn(elsewhere, answerStatus(apierrors.NewServiceUnavailable("no endpoints"))))
			},
		},
		Mount: func(t *testing.T, p providers.Provider, c providertest.Credential) { m.of(t, p).mount(t, c) },
		Silence: func(t *testing.T, p providers.Provider) func() {
			return m.of(t, p).server.silence()
		},
		PowerOff:   func(t *testing.T, p providers.Provider, id string) { m.phase(t, p, id, corev1.PodSucceeded) },
		Odd:        func(t *testing.T, p providers.Provider, id string) { m.phase(t, p, id, "Hibernated") },
		CallWithin: 5 * time.Second,
	}
	m.addFaults(&lab)
	return lab
}

func (m *labs) addFaults(lab *providertest.Lab) {
	with := func(f fault) func(*testing.T, providers.Provider) func() {
		return func(t *testing.T, p providers.Provider) func() { return m.of(t, p).server.breakWith(f) }
	}
	lab.Break = with(cutOff)
	lab.Confuse = with(confused)
	lab.Refuse = with(answerStatus(apierrors.NewUnauthorized("Unauthorized")))
	lab.Exhaust = with(only("create", "pods", answerStatus(overQuota())))
	lab.Stall = func(t *testing.T, p providers.Provider) func() {
		l := m.of(t, p)
		kubernetes.Impatient(l.Provider.(*kubernetes.Provider), time.Second)
		return l.server.stall()
	}
	lab.HalfWay = func(t *testing.T, p providers.Provider) func() {
		l := m.of(t, p)
		return l.server.breakWith(only("create", "pods", l.server.losesTheAnswer))
	}
}

func (m *labs) again(t *testing.T, p providers.Provider, installation string) providers.Provider {
	l := *m.of(t, p)
	l.Provider = l.open(t, installation)
	m.all.Store(l.Provider, &l)
	return l.Provider
}

func (m *labs) phase(t *testing.T, p providers.Provider, id string, phase corev1.PodPhase) {
	t.Helper()
	namespace, name, _ := strings.Cut(id, "/")
	m.of(t, p).server.change(t, namespace, name, func(pod *corev1.Pod) { pod.Status.Phase = phase })
}

// marked is a Pod with all marks of a request.
func marked(req providers.CreateRequest) *corev1.Pod {
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: req.Name, Namespace: namespace, Labels: map[string]string{
			providers.MarkManaged: "true", providers.MarkUID: req.UID, providers.MarkInstallation: req.Installation,
		}},
		Status: corev1.PodStatus{Phase: corev1.PodPending},
	}
}

// plant puts Pods there that are nobody's, nobody's by half, and another installation's.
func (l *lab) plant(t *testing.T) (ids []string) {
	t.Helper()
	bare, half, foreign := marked(request("bare")), marked(request("half")), marked(request("foreign"))
	bare.Labels = map[string]string{"app": "web"}
	half.Labels[providers.MarkManaged] = "yes"
	foreign.Labels[providers.MarkInstallation] = "elsewhere"
	for _, pod := range []*corev1.Pod{bare, half, foreign} {
		l.server.put(t, podsIn(namespace, pod.Name), pod)
		ids = append(ids, namespace+"/"+pod.Name)
	}
	return ids
}

func (l *lab) mount(t *testing.T, c providertest.Credential) {
	t.Helper()
	switch c {
	case providertest.CredentialMissing:
		require.NoError(t, os.Remove(l.kubeconfig))
	case providertest.CredentialUnreadable:
		require.NoError(t, os.WriteFile(l.kubeconfig, []byte("users: ["+secret+": {"), 0o600))
	case providertest.CredentialRotated:
		l.server.mu.Lock()
		l.server.token += "-next"
		token := l.server.token
		l.server.mu.Unlock()
		l.writeKubeconfig(t, token)
	}
}

// fault answers a request, and says whether it has.
type fault = func(http.ResponseWriter, *http.Request, action) bool

func only(verb, resource string, f fault) fault {
	return func(w http.ResponseWriter, r *http.Request, a action) bool {
		return a.verb == verb && a.resource == resource && f(w, r, a)
	}
}

func onlyIn(namespace string, f fault) fault {
	return func(w http.ResponseWriter, r *http.Request, a action) bool {
		return a.namespace == namespace && f(w, r, a)
	}
}

func answerStatus(err error) fault {
	return func(w http.ResponseWriter, _ *http.Request, _ action) bool { fail(w, err); return true }
}

func cutOff(http.ResponseWriter, *http.Request, action) bool { panic(http.ErrAbortHandler) }

// confused answers as a gateway without a server behind it, or a path that is not there.
func confused(w http.ResponseWriter, _ *http.Request, a action) bool {
	if a.verb == "list" {
		fail(w, apierrors.NewGenericServerResponse(http.StatusNotFound, "get", schema.GroupResource{}, "", "", 0, false))
		return true
	}
	w.Header().Set("Content-Type", "text/html")
	w.WriteHeader(http.StatusNotFound)
	_, _ = w.Write([]byte("<html><body><h1>404 Not Found</h1></body></html>"))
	return true
}

func overQuota() error {
	status := apierrors.NewForbidden(schema.GroupResource{Resource: "pods"}, "proxy-x", context.Canceled)
	status.ErrStatus.Message = `pods "proxy-x" is forbidden: exceeded quota: small, ` +
		`requested: pods=1, used: pods=5, limited: pods=5`
	return status
}

func (s *apiServer) silence() func() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.faults.silent = true
	return func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.faults.silent = false
	}
}

// stall takes calls and answers none.
func (s *apiServer) stall() func() {
	released := make(chan struct{})
	heal := s.breakWith(func(_ http.ResponseWriter, r *http.Request, _ action) bool {
		select {
		case <-released:
		case <-r.Context().Done():
		}
		return false
	})
	return sync.OnceFunc(func() { heal(); close(released) })
}

// losesTheAnswer makes the Pod, and the client never hears of it.
func (s *apiServer) losesTheAnswer(_ http.ResponseWriter, r *http.Request, a action) bool {
	if _, err := s.answer(r, a); err != nil {
		return false
	}
	panic(http.ErrAbortHandler)
}
