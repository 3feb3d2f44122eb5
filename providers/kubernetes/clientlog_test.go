package kubernetes_test

import (
	"bytes"
	"log/slog"
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"k8s.io/klog/v2"

	"github.com/egressfleet/egressfleet/providers"
	"github.com/egressfleet/egressfleet/testsuite/kubeapi"
)

// cutInTheMiddle begins an answer and drops it, of which client-go has something to say.
func cutInTheMiddle(w http.ResponseWriter, _ *http.Request, _ kubeapi.Action) bool {
	w.Header().Set("Content-Type", "application/json")
	_, _ = w.Write([]byte(`{"kind":`))
	w.(http.Flusher).Flush()
	panic(http.ErrAbortHandler)
}

func TestWhatClientGoSaysIsADetailOfTheCall(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	l.server.Break(kubeapi.Only("get", "pods", cutInTheMiddle))
	for level, says := range map[slog.Level]bool{providers.LevelDetail: true, providers.LevelOutcome: false} {
		var out bytes.Buffer
		ctx := providers.WithLogger(t.Context(), slog.New(slog.NewTextHandler(&out, &slog.HandlerOptions{Level: level})))
		_, err := l.Get(ctx, namespace+"/some")
		require.ErrorIs(t, err, providers.ErrTransient)
		require.Contains(t, out.String(), "kubernetes get failed")
		require.Equal(t, says, strings.Contains(out.String(), `level=DEBUG-4 msg="kubernetes client" says=`), out.String())
	}
}

// Lines that go nowhere else would be written to the standard error.
func TestNoLineOfClientGoIsLeftToTheProcess(t *testing.T) {
	var out bytes.Buffer
	klog.LogToStderr(false)
	klog.SetOutput(&out)
	t.Cleanup(func() { klog.LogToStderr(true); klog.SetOutput(nil) })
	t.Setenv("HTTP2_READ_IDLE_TIMEOUT_SECONDS", "soon")
	l := newLab(t)
	l.server.Break(kubeapi.Only("get", "pods", cutInTheMiddle))
	ctx := providers.WithLogger(t.Context(), slog.New(slog.DiscardHandler))
	_, err := l.Get(ctx, namespace+"/some")
	require.ErrorIs(t, err, providers.ErrTransient)
	klog.Flush()
	require.Empty(t, out.String())
}
