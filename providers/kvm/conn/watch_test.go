package conn_test

import (
	"bytes"
	"log/slog"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/otel/codes"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"

	"github.com/egressfleet/egressfleet/providers"
	"github.com/egressfleet/egressfleet/providers/kvm/conn"
)

// TestSpans: the dial is a child of the call that waited for it, and without one there is none.
func TestSpans(t *testing.T) {
	t.Parallel()
	s := newSSHD(t)
	host := s.host()
	spans := tracetest.NewSpanRecorder()
	tracer := sdktrace.NewTracerProvider(sdktrace.WithSpanProcessor(spans)).Tracer("test")

	require.NoError(t, host.Probe(t.Context(), version))
	require.Empty(t, spans.Started(), "there was no parent")

	ctx, parent := tracer.Start(t.Context(), "call")
	require.NoError(t, host.Do(ctx, version))
	require.NoError(t, host.Do(ctx, version))
	s.set(func(f *faults) { f.refusesKeys = true })
	require.Error(t, host.Probe(ctx, version))
	ended := spans.Ended()
	require.Len(t, ended, 2, "one dial that worked, none for the second call, and one that did not")
	for _, span := range ended {
		require.Equal(t, "kvm.dial", span.Name())
		require.Equal(t, parent.SpanContext().SpanID(), span.Parent().SpanID())
	}
	require.Equal(t, codes.Unset, ended[0].Status().Code)
	require.Equal(t, sdktrace.Status{Code: codes.Error, Description: "Unauthorized"}, ended[1].Status())
}

// TestLines: a connection is a detail, one that fails or is lost an outcome; nothing is louder.
func TestLines(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newSSHD(t)
		host := s.host()
		var lines bytes.Buffer
		log := slog.New(slog.NewTextHandler(&lines, &slog.HandlerOptions{Level: providers.LevelWire}))
		ctx := providers.WithLogger(t.Context(), log)
		take := func() string {
			synctest.Wait()
			defer lines.Reset()
			return lines.String()
		}
		require.NoError(t, host.Do(ctx, version))
		require.Regexp(t, `level=DEBUG-4 msg="host is connected" host=h1 .*bridge=forward\n$`, take())
		s.cut()
		synctest.Wait()
		require.NoError(t, host.Do(ctx, version))
		require.Regexp(t, `^.*level=DEBUG msg="connection to the host was lost" host=h1 error=".* ended: EOF"\n.*\n$`, take())
		s.set(func(f *faults) { f.refusesKeys = true })
		require.Error(t, host.Probe(ctx, version))
		require.Regexp(t, `^.*level=DEBUG msg="host cannot be reached" host=h1 .*Unauthorized.*\n$`, take())
	})
}

func TestConfig(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		change func(*conn.Config)
		says   string // "" where it is right
	}{
		"as it should be":          {func(*conn.Config) {}, ""},
		"a command":                {func(c *conn.Config) { c.Bridge, c.Command = "command", "nc -U /x" }, ""},
		"IPv6":                     {func(c *conn.Config) { c.Address = "[2001:db8::1]:22" }, ""},
		"no host":                  {func(c *conn.Config) { c.Host = "" }, "host must be set"},
		"no user":                  {func(c *conn.Config) { c.User = "" }, "user must be set"},
		"no key":                   {func(c *conn.Config) { c.KeyFile = "" }, "keyFile must be set"},
		"no known hosts":           {func(c *conn.Config) { c.KnownHostsFile = "" }, "knownHostsFile must be set"},
		"no port":                  {func(c *conn.Config) { c.Address = "192.0.2.5" }, `"192.0.2.5" must be host:port`},
		"an empty port":            {func(c *conn.Config) { c.Address = "192.0.2.5:" }, `"192.0.2.5:" must be host:port`},
		"a relative socket":        {func(c *conn.Config) { c.Socket = "libvirt-sock" }, "must be an absolute path"},
		"an unknown bridge":        {func(c *conn.Config) { c.Bridge = "tcp" }, `bridge "tcp" must be forward or command`},
		"a command for forwarding": {func(c *conn.Config) { c.Command = "nc" }, "command is for bridge: command only"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			config := conn.Config{Host: "h1", Address: address, User: "u", KeyFile: "/k", KnownHostsFile: "/h"}
			c.change(&config)
			if c.says == "" {
				require.NoError(t, config.Validate())
				return
			}
			require.ErrorContains(t, config.Validate(), c.says)
		})
	}
}
