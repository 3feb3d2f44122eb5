package remote_test

import (
	"context"
	"errors"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/egressfleet/egressfleet/providers"
	"github.com/egressfleet/egressfleet/testsuite/chaos/remote"
	"github.com/egressfleet/egressfleet/testsuite/fake"
	"github.com/egressfleet/egressfleet/testsuite/providertest"
)

// far is a fake behind a socket; the suite's hooks find the fake itself.
type far struct {
	*remote.Provider
	near *fake.Faults
}

func (f far) Unwrap() providers.Provider { return f.near }

// served returns a fake and what reaches it through a socket.
func served(t *testing.T) far {
	t.Helper()
	dir, err := os.MkdirTemp("", "remote-") //nolint:usetesting // the path of a socket has to be short
	require.NoError(t, err)
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	socket := filepath.Join(dir, "s")
	l, err := new(net.ListenConfig).Listen(t.Context(), "unix", socket)
	require.NoError(t, err)
	near := fake.WithFaults(fake.New("lab"))
	server := &http.Server{Handler: remote.Handler(near), ReadHeaderTimeout: time.Minute}
	go func() { _ = server.Serve(l) }()
	t.Cleanup(func() { _ = server.Close() })
	return far{remote.New("lab", socket), near}
}

func TestAProviderBehindASocketMeetsTheContract(t *testing.T) {
	t.Parallel()
	find := func(t *testing.T, p providers.Provider) *fake.Faults {
		f, ok := providers.As[*fake.Faults](p)
		require.True(t, ok)
		return f
	}
	providertest.Suite{
		Name: "lab", Installation: fake.DefaultInstallation, Inventory: true, Poll: time.Millisecond,
		New: func(t *testing.T) providers.Provider { return served(t) },
		Lab: providertest.Lab{
			Break: func(t *testing.T, p providers.Provider) func() {
				find(t, p).Break(providers.ErrTransient)
				return find(t, p).Heal
			},
			Stall: func(t *testing.T, p providers.Provider) func() { return find(t, p).Stall() },
		},
	}.Run(t)
}

func TestAnErrorKeepsItsClassItsOperationAndItsWords(t *testing.T) {
	t.Parallel()
	f := served(t)
	calls := map[string]func() error{
		providers.OpCreate: func() error { _, err := f.Create(t.Context(), providers.CreateRequest{Name: "a"}); return err },
		providers.OpGet:    func() error { _, err := f.Get(t.Context(), fake.ID("a")); return err },
		providers.OpDelete: func() error { return f.Delete(t.Context(), fake.ID("a")) },
		providers.OpList:   func() error { _, err := f.ListByTag(t.Context()); return err },
	}
	for op, call := range calls {
		for _, class := range providers.Classes() {
			f.near.Before(op, fake.FailingWith(class, "no room in zone a"))
			far := call()
			e, ok := errors.AsType[*providers.Error](far)
			require.True(t, ok, far)
			require.Equal(t, class, e.Class)
			require.Equal(t, op, e.Op)
			require.Equal(t, "lab", e.Provider)
			require.ErrorContains(t, far, "no room in zone a")
		}
	}
}

func TestALateFailureStaysOne(t *testing.T) {
	t.Parallel()
	f := served(t)
	f.near.FailCreate(providers.ErrQuotaExceeded, "stockout")
	id, err := f.Create(t.Context(), providers.CreateRequest{Name: "a", UID: "u"})
	require.NoError(t, err)
	_, err = f.Get(t.Context(), id)
	require.True(t, providers.IsCreateFailed(err))
	require.Equal(t, providers.ErrQuotaExceeded, providers.ClassOf(err))
}

func TestAForeignInstanceIsNamed(t *testing.T) {
	t.Parallel()
	f := served(t)
	f.near.Plant(providers.Instance{ID: fake.ID("a"), UID: "theirs", Installation: "prod"})
	_, err := f.Create(t.Context(), providers.CreateRequest{Name: "a", UID: "ours"})
	foreign, ok := errors.AsType[*providers.ForeignError](err)
	require.True(t, ok, err)
	require.Equal(t, "theirs", foreign.Found.UID)
	require.Equal(t, "ours", foreign.Wanted.UID)
}

func TestTheEndOfTheCallersContextReachesTheBackend(t *testing.T) {
	t.Parallel()
	f := served(t)
	arrived, ended := make(chan struct{}), make(chan struct{})
	f.near.Before(providers.OpGet, func(ctx context.Context) error {
		close(arrived)
		<-ctx.Done()
		close(ended)
		return ctx.Err()
	})
	ctx, cancel := context.WithCancel(t.Context())
	answered := make(chan error)
	go func() { _, err := f.Get(ctx, fake.ID("a")); answered <- err }()
	<-arrived
	cancel()
	err := <-answered
	require.ErrorIs(t, err, context.Canceled)
	require.ErrorIs(t, err, providers.ErrTransient)
	<-ended
}

func TestABackendThatIsNotThereIsTransient(t *testing.T) {
	t.Parallel()
	p := remote.New("lab", filepath.Join(t.TempDir(), "nobody"))
	_, err := p.Get(t.Context(), fake.ID("a"))
	require.ErrorIs(t, err, providers.ErrTransient)
	require.NotErrorIs(t, err, providers.ErrNotFound)
}
