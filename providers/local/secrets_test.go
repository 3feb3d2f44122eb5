package local_test

import (
	"bytes"
	"log/slog"
	"os"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/egressfleet/egressfleet/providers"
)

func TestCloudInitIsNowhere(t *testing.T) {
	t.Parallel()
	const sentinel = "s3ntinel"
	var log bytes.Buffer
	handler := slog.NewTextHandler(&log, &slog.HandlerOptions{Level: providers.LevelWire})
	ctx := providers.WithLogger(t.Context(), slog.New(handler))
	l := newLab(t)
	req := request("u")
	req.CloudInit = []byte("#cloud-config\npassword: " + sentinel + "\n")
	_, err := l.Create(ctx, req)
	require.NoError(t, err)
	foreign := req
	foreign.UID = "other"
	_, err = l.Create(ctx, foreign)
	require.ErrorIs(t, err, providers.ErrPermanent)
	require.NotContains(t, err.Error(), sentinel)
	require.NotContains(t, log.String(), sentinel)
	require.Contains(t, log.String(), "cloudInitBytes="+strconv.Itoa(len(req.CloudInit)))
	require.NotEmpty(t, l.files())
	for _, file := range l.files() {
		data, err := os.ReadFile(file)
		require.NoError(t, err)
		require.NotContains(t, string(data), sentinel, file)
	}
}

func TestLinesSayWhichProviderInstanceAndClass(t *testing.T) {
	t.Parallel()
	var log bytes.Buffer
	handler := slog.NewTextHandler(&log, &slog.HandlerOptions{Level: providers.LevelOutcome})
	ctx := providers.WithLogger(t.Context(), slog.New(handler).With(slog.String("traceID", "t1")))
	l := newLab(t)
	_, err := l.Get(ctx, "elsewhere/x")
	require.Error(t, err)
	for _, part := range []string{"traceID=t1", "provider=here", "providerID=elsewhere/x", "class=Permanent"} {
		require.Contains(t, log.String(), part)
	}
}

// What the process was given is read back from the kernel.
func TestTheProcessInheritsNothing(t *testing.T) {
	t.Setenv("EGRESSFLEET_TEST_SECRET", "s3ntinel")
	t.Setenv("HTTPS_PROXY", "http://user:s3ntinel@127.0.0.1:1")
	l := newLab(t)
	i := l.running("u")
	env, err := os.ReadFile("/proc/" + strconv.Itoa(l.pid(request("u").Name)) + "/environ")
	require.NoError(t, err)
	require.NotContains(t, string(env), "s3ntinel")
	require.NotContains(t, string(env), "PATH=")

	cwd, err := os.Readlink("/proc/" + strconv.Itoa(l.pid(request("u").Name)) + "/cwd")
	require.NoError(t, err)
	require.Equal(t, "/", cwd)
	session, err := unix.Getsid(l.pid(request("u").Name))
	require.NoError(t, err)
	require.Equal(t, l.pid(request("u").Name), session, "no terminal of the worker's reaches it")
	target := newTarget(t) // and it does not go through the worker's own proxy
	require.Equal(t, i.IP, target.seenBy(t, through(t, i)))
}
