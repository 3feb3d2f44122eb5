package kubernetes_test

import (
	"context"
	"encoding/json"
	"net/http"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"

	"github.com/egressfleet/egressfleet/providers"
	"github.com/egressfleet/egressfleet/providers/kubernetes"
	"github.com/egressfleet/egressfleet/testsuite/kubeapi"
)

// The captured answers are about this Pod.
const (
	capturedName      = "proxy-aaaaaaaaaaaaaaaa"
	capturedNamespace = "proxies"
	capturedID        = capturedNamespace + "/" + capturedName
)

// answer is what an API server, or something before it, has answered.
type answer struct {
	Name, Op string
	Status   int
	Headers  map[string]string
	Body     json.RawMessage // of the API server
	Text     string          // of something else
	Class    providers.Class // "": the operation succeeds
}

func (a answer) fault() kubeapi.Fault {
	body := []byte(a.Text)
	if a.Body != nil {
		body = a.Body
	}
	return kubeapi.Only(a.Op, "pods", kubeapi.Body(a.Status, a.Headers, body))
}

func load(t *testing.T, file string, into any) {
	t.Helper()
	data, err := os.ReadFile(filepath.Join("testdata", file))
	require.NoError(t, err)
	require.NoError(t, json.Unmarshal(data, into))
}

// newCapturedLab has one namespace, that of the captured answers.
func newCapturedLab(t *testing.T) *lab {
	t.Helper()
	return newLab(t, func(cfg *kubernetes.Config) { cfg.Namespace, cfg.MachineTypes = capturedNamespace, nil })
}

func capturedRequest() providers.CreateRequest {
	req := request("u")
	req.Name = capturedName
	return req
}

// run is an operation on the Pod of the captured answers.
func (l *lab) run(ctx context.Context, op string) error {
	var err error
	switch op {
	case providers.OpCreate:
		_, err = l.Create(ctx, capturedRequest())
	case providers.OpGet:
		_, err = l.Get(ctx, capturedID)
	case providers.OpDelete:
		err = l.Delete(ctx, capturedID)
	default:
		_, err = l.ListByTag(ctx)
	}
	return err
}

func TestCapturedAnswers(t *testing.T) {
	t.Parallel()
	var answers []answer
	load(t, "answers.json", &answers)
	for _, a := range answers {
		t.Run(a.Name, func(t *testing.T) {
			t.Parallel()
			l := newCapturedLab(t)
			// A Retry-After is waited out by client-go, as far as there is time.
			kubernetes.Impatient(l.Provider.(*kubernetes.Provider), 2*time.Second)
			if a.Op == providers.OpDelete {
				pod := marked(capturedRequest())
				pod.Namespace = capturedNamespace
				l.server.Put(t, kubeapi.PodIn(capturedNamespace, capturedName), pod)
			}
			l.server.Break(a.fault())
			err := l.run(t.Context(), a.Op)
			if a.Class == "" {
				require.NoError(t, err)
				return
			}
			require.ErrorIs(t, err, a.Class)
			require.Equal(t, a.Class, providers.ClassOf(err))
			require.ErrorContains(t, err, providerName+": "+a.Op)
		})
	}
}

// A gateway in front of the API server answers for every class of page, and no Create,
// Get or list takes that for an instance that is gone.
func TestNoCapturedAnswerToAnotherCallIsNotFound(t *testing.T) {
	t.Parallel()
	var answers []answer
	load(t, "answers.json", &answers)
	for _, a := range answers {
		if a.Class == "" || a.Class == providers.ErrNotFound || a.Headers["Retry-After"] != "" {
			continue
		}
		t.Run(a.Name, func(t *testing.T) {
			t.Parallel()
			l := newCapturedLab(t)
			a.Op = "get"
			l.server.Break(a.fault())
			for _, op := range []string{providers.OpCreate, providers.OpGet, providers.OpDelete} {
				err := l.run(t.Context(), op)
				require.NotErrorIs(t, err, providers.ErrNotFound, op)
			}
		})
	}
}

// The server asks for a second; client-go waits for it and asks again.
func TestRetryAfterIsHonoured(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	id, err := l.Create(t.Context(), request("u"))
	require.NoError(t, err)
	busy := kubeapi.Body(http.StatusTooManyRequests, map[string]string{"Retry-After": "1"}, []byte("Too many requests"))
	l.server.Break(kubeapi.Only("get", "pods", kubeapi.Once(busy)))
	before := len(l.server.Calls())
	_, err = l.Get(t.Context(), id)
	require.NoError(t, err)
	require.Equal(t, []string{"get pods", "get pods"}, l.server.Calls()[before:])
}

func TestWithoutTimeTheServersWordIsKept(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	kubernetes.Impatient(l.Provider.(*kubernetes.Provider), 2*time.Second)
	busy := kubeapi.Body(http.StatusTooManyRequests, map[string]string{"Retry-After": "30"}, []byte("Too many requests"))
	l.server.Break(kubeapi.Only("get", "pods", busy))
	_, err := l.Get(t.Context(), namespace+"/proxy-x")
	require.ErrorIs(t, err, providers.ErrQuotaExceeded)
	require.ErrorContains(t, err, "retry after 30s")
}

func TestCapturedPods(t *testing.T) {
	t.Parallel()
	var pods []struct {
		Name, Reason, IP string
		State            providers.State
		Pod              json.RawMessage
	}
	load(t, "pods.json", &pods)
	l := newCapturedLab(t)
	for _, c := range pods {
		t.Run(c.Name, func(t *testing.T) {
			heal := l.server.Break(kubeapi.Body(http.StatusOK, map[string]string{"Content-Type": "application/json"}, c.Pod))
			defer heal()
			var pod corev1.Pod
			require.NoError(t, json.Unmarshal(c.Pod, &pod))
			found, err := l.Get(t.Context(), capturedID)
			require.NoError(t, err)
			require.Equal(t, c.State, found.State)
			require.Equal(t, c.IP, found.IP)
			if c.Reason == "" {
				require.Empty(t, found.Reason)
			}
			require.Contains(t, found.Reason, c.Reason)
			require.Equal(t, pod.Labels[providers.MarkUID], found.UID)
			require.Equal(t, pod.CreationTimestamp.UTC(), found.CreatedAt)
		})
	}
}
