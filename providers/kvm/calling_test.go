package kvm

import (
	"bytes"
	"context"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	"go.opentelemetry.io/otel/trace"

	"github.com/egressfleet/egressfleet/providers"
	"github.com/egressfleet/egressfleet/providers/kvm/conn"
)

// life makes every kind of call about one instance.
func life(t *testing.T, ctx context.Context, p *Provider) { //nolint:revive // the test comes first here, too
	t.Helper()
	id, err := p.Create(ctx, request("watched"))
	require.NoError(t, err)
	_, err = p.Get(ctx, id)
	require.NoError(t, err)
	_, err = p.ListByTag(ctx)
	require.NoError(t, err)
	require.NoError(t, p.Delete(ctx, id))
	p.Check(ctx)
}

func TestEveryCallIsASpanBelowItsOperation(t *testing.T) {
	t.Parallel()
	spans := tracetest.NewSpanRecorder()
	tracer := sdktrace.NewTracerProvider(sdktrace.WithSpanProcessor(spans)).Tracer("test")
	ctx, parent := tracer.Start(t.Context(), "operation")
	l := newLab("a")
	life(t, ctx, l.open(t))
	ended := spans.Ended()
	parent.End()
	require.Len(t, ended, len(l.hosts["a"].called), "one span for each call")
	names := map[string]bool{}
	for _, s := range ended {
		names[s.Name()] = true
		require.Equal(t, parent.SpanContext().SpanID(), s.Parent().SpanID(), s.Name())
		require.Equal(t, trace.SpanKindClient, s.SpanKind(), s.Name())
		require.True(t, strings.HasPrefix(s.Name(), "kvm."), s.Name())
		require.Equal(t, "kvm.host", string(s.Attributes()[0].Key))
	}
	require.True(t, names["kvm.DomainCreate"] && names["kvm.StorageVolUpload"])
}

func TestEveryLineSaysHostAndName(t *testing.T) {
	t.Parallel()
	var lines bytes.Buffer
	log := slog.New(slog.NewTextHandler(&lines, &slog.HandlerOptions{Level: providers.LevelWire}))
	ctx := providers.WithLogger(t.Context(), log)
	l := newLab("a")
	p := l.open(t)
	life(t, ctx, p)
	l.hosts["a"].fail(conn.StageDial, conn.Unreachable)
	_, err := p.ListByTag(ctx)
	require.Error(t, err)
	_, err = p.Get(ctx, formatID("a", providers.NameFromUID("watched")))
	require.Error(t, err)
	named := 0
	for line := range strings.Lines(lines.String()) {
		require.Contains(t, line, "provider="+providerName)
		if strings.Contains(line, `msg="kvm list`) {
			continue // it is about all hosts
		}
		require.Contains(t, line, "host=a", line)
		if strings.Contains(line, "name="+providers.NameFromUID("watched")) {
			named++
		}
	}
	require.Greater(t, named, 20)
}

// A libvirt that answers nothing holds nobody up for longer than the bound of a call.
func TestACallHasABoundOfItsOwn(t *testing.T) {
	t.Parallel()
	l := newLab("a")
	p := l.open(t)
	id := create(t, p, "bounded")
	p.bounds.call = 10 * time.Millisecond
	release := l.hosts["a"].stall()
	defer release()
	_, err := p.Get(t.Context(), id)
	require.ErrorIs(t, err, providers.ErrTransient)
	require.ErrorContains(t, err, "no answer within 10ms")
	require.ErrorContains(t, err, "host a: DomainLookupByName")
}

func TestBoundsLeaveLibvirtTimeToSayThatADomainIsLocked(t *testing.T) {
	t.Parallel()
	b := defaultBounds()
	const libvirtWaits = 30 * time.Second
	for _, rpc := range []string{"DomainDestroyFlags", rpcStart, rpcUpload, rpcDownload} {
		require.Greater(t, b.of(rpc), libvirtWaits, rpc)
	}
	require.Less(t, b.create, 5*time.Minute, "a create that blocks stays under 5 minutes")
}

func TestTurnsOfANameAreForgotten(t *testing.T) {
	t.Parallel()
	var n names
	release, err := n.hold(t.Context(), "x")
	require.NoError(t, err)
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	_, err = n.hold(ended, "x")
	require.ErrorIs(t, err, context.Canceled)
	other, err := n.hold(t.Context(), "y")
	require.NoError(t, err, "another name waits for nobody")
	other()
	release()
	require.Empty(t, n.held)
}

// That there is no such domain is an answer, and no line of the tier that people watch.
func TestWhatIsNotThereIsNoFailedCall(t *testing.T) {
	t.Parallel()
	var lines bytes.Buffer
	log := slog.New(slog.NewTextHandler(&lines, &slog.HandlerOptions{Level: providers.LevelOutcome}))
	_, err := newLab("a").open(t).Get(providers.WithLogger(t.Context(), log), formatID("a", "x"))
	require.ErrorIs(t, err, providers.ErrNotFound)
	require.Equal(t, 1, strings.Count(lines.String(), "\n"), lines.String())
}
