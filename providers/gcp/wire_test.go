package gcp_test

import (
	"encoding/base64"
	"fmt"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"

	"github.com/egressfleet/egressfleet/providers"
	"github.com/egressfleet/egressfleet/testsuite/gcefake"
)

// carried is what requests had that no line may have.
type carried struct {
	mu   sync.Mutex
	held map[string]bool
}

// behind remembers the credentials of the requests that go to a server.
func (c *carried) behind(next http.Handler) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		_, token, _ := strings.Cut(r.Header.Get("Authorization"), " ")
		c.mu.Lock()
		c.held[token] = true
		c.mu.Unlock()
		next.ServeHTTP(w, r)
	}
}

// User-data, the key and the tokens go through calls that work and calls that fail, with
// every tier on: each request and each answer has a line, and none has a secret.
func TestTheWireTierTellsOfEachRequestAndOfNoSecret(t *testing.T) {
	t.Parallel()
	const userData = "#cloud-config\npassword: s3ntinel-user-data\n"
	tracer := sdktrace.NewTracerProvider().Tracer("test")
	for _, traced := range []bool{true, false} {
		l := newLab(t, managed)
		seen := &carried{held: map[string]bool{}}
		open := l.gate.with(seen.behind(l.cloud))
		var lines strings.Builder
		ctx := providers.WithLogger(t.Context(),
			slog.New(slog.NewTextHandler(&lines, &slog.HandlerOptions{Level: providers.LevelWire})))
		if traced {
			ctx, _ = tracer.Start(ctx, "provider.create") //nolint:spancheck // nobody reads it
		}
		tour := func() {
			id, err := l.Create(ctx, request(func(r *providers.CreateRequest) { r.CloudInit = []byte(userData) }))
			fmt.Fprintln(&lines, "said", err)
			_, err = l.Get(ctx, id)
			fmt.Fprintln(&lines, "said", err)
			_, err = l.ListByTag(ctx)
			fmt.Fprintln(&lines, "said", err)
			fmt.Fprintln(&lines, "said", l.Delete(ctx, id))
		}
		before := len(l.cloud.Calls())
		tour()
		l.check(ctx)
		calls := len(l.cloud.Calls()) - before
		require.Equal(t, calls, strings.Count(lines.String(), `msg="gcp sends"`))
		require.Equal(t, calls, strings.Count(lines.String(), `msg="gcp receives"`))
		require.Contains(t, lines.String(), "method=POST resource=projects/"+project+"/zones/"+zoneA+"/instances")
		require.Contains(t, lines.String(), "status=200")
		for _, name := range []string{"get-401", "get-403-rateLimit-read", "get-502-html"} {
			remove := l.cloud.Inject(gcefake.Fault{Answer: gcefake.Captured(name)})
			tour()
			remove()
		}
		open()
		closed := l.gate.with(down)
		tour()
		closed()
		require.Contains(t, lines.String(), `msg="gcp receives nothing"`)
		delete(seen.held, "")
		require.NotEmpty(t, seen.held, "requests had a token")
		for token := range seen.held {
			require.NotContains(t, lines.String(), token)
			require.NotContains(t, lines.String(), token[strings.LastIndexByte(token, '.')+1:], "its signature")
		}
		require.NotContains(t, lines.String(), "s3ntinel")
		require.NotContains(t, lines.String(), base64.StdEncoding.EncodeToString([]byte(userData))[:20])
		require.NotContains(t, lines.String(), "Authorization")
		require.NotContains(t, lines.String(), strings.Split(privateKey(), "\n")[1])
	}
}

// Its own switch for logs is a variable of the environment, and would write requests as
// they are.
func TestGooglesClientLogsNothingByItself(t *testing.T) {
	t.Setenv("GOOGLE_SDK_GO_LOGGING_LEVEL", "debug")
	file, err := os.Create(filepath.Join(t.TempDir(), "stderr"))
	require.NoError(t, err)
	before := os.Stderr
	os.Stderr = file
	l := newLab(t)
	os.Stderr = before
	_, err = l.Create(t.Context(), request(func(r *providers.CreateRequest) { r.CloudInit = []byte("s3ntinel!") }))
	require.NoError(t, err)
	_, err = l.ListByTag(t.Context())
	require.NoError(t, err)
	l.check(t.Context())
	require.NoError(t, file.Close())
	said, err := os.ReadFile(file.Name())
	require.NoError(t, err)
	require.Empty(t, string(said))
}
