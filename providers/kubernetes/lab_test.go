package kubernetes_test

import (
	"context"
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

	"github.com/egressfleet/egressfleet/providers"
	"github.com/egressfleet/egressfleet/providers/kubernetes"
	"github.com/egressfleet/egressfleet/testsuite/kubeapi"
	"github.com/egressfleet/egressfleet/testsuite/providertest"
)

// The words of the shipped Role, as they are.
const (
	installation = "production"
	providerName = "kubernetes"
	namespace    = "egress"
	rolePath     = "../../deploy/kubernetes/rbac.yaml"
)

// elsewhere is a second namespace, which the machine type "far" leads to.
const (
	elsewhere = "far-egress"
	farType   = "far"
	secret    = kubeapi.Token
)

// lab is a provider before an API server of its own.
type lab struct {
	providers.Provider
	server     *kubeapi.Server
	cfg        kubernetes.Config
	kubeconfig string
}

func newLab(t *testing.T, change ...func(*kubernetes.Config)) *lab {
	t.Helper()
	l := &lab{kubeconfig: filepath.Join(t.TempDir(), "kubeconfig")}
	l.server = kubeapi.New(t, kubeapi.Rules(t, rolePath, installation))
	l.server.WriteKubeconfig(t, l.kubeconfig, kubeapi.Token)
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
			m.of(t, p).server.Grant(kubeapi.Rules(t, rolePath, other))
			return m.again(t, p, other)
		},
		Plant: func(t *testing.T, p providers.Provider) []string { return m.of(t, p).plant(t) },
		Squat: func(t *testing.T, p providers.Provider, req providers.CreateRequest, missing string) {
			pod := marked(req)
			delete(pod.Labels, missing)
			m.of(t, p).server.Put(t, kubeapi.PodIn(namespace, req.Name), pod)
		},
		Leftovers: func(t *testing.T, p providers.Provider, uid string) (left []string) {
			for _, pod := range m.of(t, p).server.Pods(t) {
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
				away := kubeapi.Answer(apierrors.NewServiceUnavailable("no endpoints"))
				return m.of(t, p).server.Break(kubeapi.OnlyIn(elsewhere, away))
			},
		},
		Mount: func(t *testing.T, p providers.Provider, c providertest.Credential) { m.of(t, p).mount(t, c) },
		Silence: func(t *testing.T, p providers.Provider) func() {
			return m.of(t, p).server.Silence()
		},
		PowerOff:   func(t *testing.T, p providers.Provider, id string) { m.phase(t, p, id, corev1.PodSucceeded) },
		Odd:        func(t *testing.T, p providers.Provider, id string) { m.phase(t, p, id, "Hibernated") },
		CallWithin: 5 * time.Second,
	}
	m.addFaults(&lab)
	return lab
}

func (m *labs) addFaults(lab *providertest.Lab) {
	with := func(f kubeapi.Fault) func(*testing.T, providers.Provider) func() {
		return func(t *testing.T, p providers.Provider) func() { return m.of(t, p).server.Break(f) }
	}
	lab.Break = with(kubeapi.CutOff)
	lab.Confuse = with(kubeapi.Confused)
	lab.Refuse = with(kubeapi.Answer(apierrors.NewUnauthorized("Unauthorized")))
	lab.Exhaust = with(kubeapi.Only("create", "pods", kubeapi.Answer(kubeapi.OverQuota())))
	lab.Stall = func(t *testing.T, p providers.Provider) func() {
		l := m.of(t, p)
		kubernetes.Impatient(l.Provider.(*kubernetes.Provider), time.Second)
		return l.server.Stall()
	}
	lab.HalfWay = func(t *testing.T, p providers.Provider) func() {
		l := m.of(t, p)
		return l.server.Break(kubeapi.Only("create", "pods", l.server.LosesTheAnswer))
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
	m.of(t, p).server.Change(t, namespace, name, func(pod *corev1.Pod) { pod.Status.Phase = phase })
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
		l.server.Put(t, kubeapi.PodIn(namespace, pod.Name), pod)
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
		l.server.WriteKubeconfig(t, l.kubeconfig, l.server.SwapToken())
	}
}
