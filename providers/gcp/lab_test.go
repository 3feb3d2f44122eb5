package gcp_test

import (
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/egressfleet/egressfleet/providers"
	"github.com/egressfleet/egressfleet/providers/gcp"
	"github.com/egressfleet/egressfleet/testsuite/gcefake"
)

const (
	providerName = "gcp-test"
	installation = "test"
	project      = gcefake.CapturedProject
	zoneA        = "us-central1-a"
	zoneB        = "us-central1-b"
	region       = "us-central1"
)

// lab is a provider before a Compute Engine of its own, with the gate between them in the
// test's hand.
type lab struct {
	*testing.T
	providers.Provider
	cloud *gcefake.Server
	gate  *gate
	cfg   gcp.Config
}

// step is how far the clock goes with each request, so that polling gets on and a test
// that looks at once sees what is under way.
const step = 10 * time.Millisecond

func usualPace() gcefake.Pace {
	return gcefake.Pace{
		Pending: 2 * step, Running: 2 * step, Provisioning: 10 * step, Staging: 10 * step,
		Stopping: 5 * step, Deprovisioning: 5 * step,
	}
}

func newLab(t *testing.T, change ...func(*gcp.Config)) *lab {
	t.Helper()
	cloud := gcefake.New(gcefake.Options{Clock: gcefake.Stepping(time.Now(), step), Pace: usualPace()})
	l := &lab{T: t, cloud: cloud, gate: newGate(t, cloud)}
	l.cfg = gcp.Config{
		Project: project, Endpoint: l.gate.URL, CallTimeout: "1s", Image: "ubuntu-os-cloud/family/ubuntu-2404-lts-amd64",
		CredentialsFile: filepath.Join(t.TempDir(), "key.json"),
	}
	l.mount(keyFile(t, "first"))
	for _, c := range change {
		c(&l.cfg)
	}
	l.Provider = l.reopen(installation)
	return l
}

// reopen returns another provider with the same configuration, as after a restart.
func (l *lab) reopen(installation string) providers.Provider {
	l.Helper()
	p, err := gcp.New(l.Context(), providerName, installation, l.cfg)
	require.NoError(l, err)
	gcp.Hasten(p, 10*time.Second)
	l.Cleanup(func() { require.NoError(l, p.Close()) })
	return p
}

func (l *lab) mount(content string) {
	l.Helper()
	require.NoError(l, os.WriteFile(l.cfg.CredentialsFile, []byte(content), 0o600))
}

func (l *lab) remove() {
	l.Helper()
	require.NoError(l, os.Remove(l.cfg.CredentialsFile))
}

// request asks for an instance that no other test has.
func request(change ...func(*providers.CreateRequest)) providers.CreateRequest {
	uid := "0f8fad5b-d9cb-469f-a165-" + strings.ToLower(rand.Text()[:12])
	req := providers.CreateRequest{
		Name: providers.NameFromUID(uid), UID: uid, Attempt: 1, Installation: installation,
		Owner: "default/a", SpecMark: `{"port":3128}`, Port: 3128,
		Placement: providers.Placement{Zone: zoneA},
	}
	for _, c := range change {
		c(&req)
	}
	return req
}

func inRegion(req *providers.CreateRequest) { req.Placement = providers.Placement{Region: region} }

func (l *lab) create(req providers.CreateRequest) string {
	l.Helper()
	id, err := l.Create(l.Context(), req)
	require.NoError(l, err)
	return id
}

func (l *lab) get(id string) providers.Instance {
	l.Helper()
	found, err := l.Get(l.Context(), id)
	require.NoError(l, err)
	return *found
}

const (
	soon = 20 * time.Second
	tick = time.Millisecond
)

func (l *lab) running(id string) providers.Instance {
	l.Helper()
	var found providers.Instance
	require.Eventually(l, func() bool {
		i, err := l.Get(l.Context(), id)
		if err == nil {
			found = *i
		}
		return err == nil && found.State == providers.StateRunning
	}, soon, tick)
	return found
}

// gone waits until Get says NotFound.
func (l *lab) gone(id string) {
	l.Helper()
	require.Eventually(l, func() bool {
		_, err := l.Get(l.Context(), id)
		return providers.ClassOf(err) == providers.ErrNotFound
	}, soon, tick)
}

func at(id string) gcefake.Place {
	parts := strings.Split(id, "/")
	return gcefake.Place{Zone: parts[1], Name: parts[3]}
}

func (l *lab) machine(id string) gcefake.Instance { return l.cloud.Instance(at(id)) }

// gate stands before the server: it looks at credentials, and can be shut.
type gate struct {
	*httptest.Server
	mu    sync.Mutex
	keys  map[string]bool // key IDs that are taken
	shut  http.HandlerFunc
	conns atomic.Int64
}

func newGate(t *testing.T, behind http.Handler) *gate {
	t.Helper()
	g := &gate{keys: map[string]bool{"first": true}}
	g.Server = httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		g.mu.Lock()
		shut, known := g.shut, g.keys[keyID(r)]
		g.mu.Unlock()
		switch {
		case shut != nil:
			shut(w, r)
		case !known:
			unauthorized(w, r)
		default:
			behind.ServeHTTP(w, r)
		}
	}))
	g.Config.ConnState = func(_ net.Conn, state http.ConnState) {
		switch state {
		case http.StateNew:
			g.conns.Add(1)
		case http.StateClosed, http.StateHijacked:
			g.conns.Add(-1)
		case http.StateActive, http.StateIdle:
		}
	}
	g.Start()
	t.Cleanup(func() {
		g.CloseClientConnections()
		g.Close()
	})
	return g
}

// open is how many connections there are.
func (g *gate) open() int64 { return g.conns.Load() }

// with lets every request be answered in that way.
func (g *gate) with(answer http.HandlerFunc) (open func()) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.shut = answer
	return func() {
		g.mu.Lock()
		defer g.mu.Unlock()
		g.shut = nil
	}
}

// takes lets one key in and no other.
func (g *gate) takes(key string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.keys = map[string]bool{key: true}
}

func unauthorized(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Content-Type", "application/json; charset=UTF-8")
	w.WriteHeader(http.StatusUnauthorized)
	_, _ = w.Write([]byte(`{"error": {"code": 401, "message": "Request had invalid authentication credentials.",` +
		` "errors": [{"domain": "global", "reason": "authError"}], "status": "UNAUTHENTICATED"}}`))
}

// keyID is the key that a token was signed with.
func keyID(r *http.Request) string {
	token, _ := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
	head, _, _ := strings.Cut(token, ".")
	raw, err := base64.RawURLEncoding.DecodeString(head)
	if err != nil {
		return ""
	}
	var fields struct {
		Kid string `json:"kid"`
	}
	_ = json.Unmarshal(raw, &fields)
	return fields.Kid
}

// down cuts every connection off.
func down(w http.ResponseWriter, _ *http.Request) {
	conn, _, err := http.NewResponseController(w).Hijack()
	if err == nil {
		_ = conn.Close()
	}
}

// htmlNotFound is what a server in between says of a path that it does not know.
func htmlNotFound(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Content-Type", "text/html; charset=UTF-8")
	w.WriteHeader(http.StatusNotFound)
	_, _ = w.Write([]byte("<!DOCTYPE html><title>Error 404 (Not Found)!!1</title>"))
}

// stall answers nothing until it is released.
func (g *gate) stall() (release func()) {
	released := make(chan struct{})
	open := g.with(func(w http.ResponseWriter, r *http.Request) {
		select {
		case <-released:
			down(w, r)
		case <-r.Context().Done():
		}
	})
	return sync.OnceFunc(func() {
		open()
		close(released)
	})
}

var privateKey = sync.OnceValue(func() string {
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		panic(err)
	}
	der, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		panic(err)
	}
	return string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der}))
})

// keyFile is a key of a service account.
func keyFile(t *testing.T, id string) string {
	t.Helper()
	text, err := json.Marshal(map[string]string{
		"type": "service_account", "project_id": project, "private_key_id": id, "private_key": privateKey(),
		"client_email": "fleet@" + project + ".iam.gserviceaccount.com", "client_id": "1",
		"token_uri": "https://oauth2.googleapis.com/token",
	})
	require.NoError(t, err)
	return string(text)
}
