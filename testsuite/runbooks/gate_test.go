//go:build tools

package runbooks_test

import (
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"encoding/pem"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/egressfleet/egressfleet/testsuite/gcefake"
)

// gate lets calls to a Compute Engine through that were signed with a key it takes.
type gate struct {
	cloud *gcefake.Server
	mu    sync.Mutex
	takes []string
	last  string // key that a call was signed with
}

func newGate() *gate { return &gate{cloud: gcefake.New(gcefake.Options{}), takes: []string{"first"}} }

func (g *gate) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	key := keyID(r)
	g.mu.Lock()
	g.last = key
	let := slices.Contains(g.takes, key)
	g.mu.Unlock()
	if !let {
		w.Header().Set("Content-Type", "application/json; charset=UTF-8")
		w.WriteHeader(http.StatusUnauthorized)
		_, _ = w.Write([]byte(`{"error": {"code": 401, "message": "Request had invalid authentication credentials.",` +
			` "errors": [{"domain": "global", "reason": "authError"}], "status": "UNAUTHENTICATED"}}`))
		return
	}
	g.cloud.ServeHTTP(w, r)
}

func (g *gate) take(keys ...string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.takes = keys
}

func (g *gate) used() string {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.last
}

// keyID is in the header of a token that a service account has signed itself.
func keyID(r *http.Request) string {
	token, _ := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
	head, _, _ := strings.Cut(token, ".")
	raw, _ := base64.RawURLEncoding.DecodeString(head)
	var fields struct {
		Kid string `json:"kid"`
	}
	_ = json.Unmarshal(raw, &fields) // without a key it is refused
	return fields.Kid
}

// serviceAccount is a key file.
func serviceAccount(t *testing.T, id string) string {
	t.Helper()
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	require.NoError(t, err)
	der, err := x509.MarshalPKCS8PrivateKey(key)
	require.NoError(t, err)
	text, err := json.Marshal(map[string]string{
		"type": "service_account", "project_id": gcefake.CapturedProject, "private_key_id": id,
		"private_key":  string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der})),
		"client_email": "fleet@example.iam.gserviceaccount.com", "client_id": "1",
		"token_uri": "https://oauth2.googleapis.com/token",
	})
	require.NoError(t, err)
	return string(text)
}

// kubeconfig is one with a token.
func (w *world) kubeconfig(token string) string {
	w.t.Helper()
	text, err := clientcmd.Write(*w.kubernetes.Kubeconfig(token))
	require.NoError(w.t, err)
	return string(text)
}

func sum(text string) string {
	digest := sha256.Sum256([]byte(text))
	return hex.EncodeToString(digest[:])
}
