package local

import (
	"context"
	"net"
	"net/netip"
	"os"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/egressfleet/egressfleet/providers"
)

// faulty is a machine that refuses to bind below an address, and has no process.
type faulty struct {
	machine
	listenErr error
	only      netip.Prefix // where it refuses; unset: everywhere
	listens   []netip.AddrPort
}

func (f *faulty) listen(_ context.Context, at netip.AddrPort) (*os.File, error) {
	f.listens = append(f.listens, at)
	if f.only.IsValid() && !f.only.Contains(at.Addr()) {
		return os.Open(os.DevNull)
	}
	return nil, &net.OpError{Op: "listen", Err: os.NewSyscallError("bind", f.listenErr)}
}

func (*faulty) look(string) (vital, error)         { return vital{}, nil }
func (*faulty) stop(context.Context, string) error { return nil }

func newFaulty(t *testing.T, listenErr error, addresses string) (*Provider, *faulty) {
	t.Helper()
	p, err := New(t.Context(), "here", "test", Config{Dir: t.TempDir(), AddressRange: addresses})
	require.NoError(t, err)
	f := &faulty{listenErr: listenErr}
	l := p.(*Provider)
	l.machine = f
	return l, f
}

func TestCreateThatCannotBindLeavesNothing(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		err       error
		addresses string
		want      providers.Class
		says      string
		listens   int
	}{
		"a privileged port":        {syscall.EACCES, linuxRange, providers.ErrPermanent, "spec.port: 80", 1},
		"a machine with 127.0.0.1": {syscall.EADDRNOTAVAIL, linuxRange, providers.ErrPermanent, "set it to 127.0.0.1/32", 1},
		"a busy port":              {syscall.EADDRINUSE, otherRange, providers.ErrQuotaExceeded, "127.0.0.1 port 80", 1},
		"the error of a busy port": {syscall.EADDRINUSE, otherRange, providers.ErrQuotaExceeded, "already in use", 1},
		"a port taken everywhere is soon given up": {
			syscall.EADDRINUSE, linuxRange, providers.ErrQuotaExceeded,
			"16 were tried, the last one: listen: bind: address already in use; " +
				"something may listen on every address (0.0.0.0:80)", 17,
		},
		"no descriptors to be had":  {syscall.EMFILE, linuxRange, providers.ErrQuotaExceeded, "too many", 1},
		"something nobody expected": {syscall.EPROTO, linuxRange, providers.ErrTransient, "protocol error", 1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p, f := newFaulty(t, c.err, c.addresses)
			_, err := p.Create(t.Context(), providers.CreateRequest{
				Name: "proxy-a", UID: "u", Installation: "test", Port: 80,
			})
			require.ErrorIs(t, err, c.want)
			require.ErrorContains(t, err, c.says)
			require.Len(t, f.listens, c.listens)
			names, err := p.store.names()
			require.NoError(t, err)
			require.Empty(t, names)
		})
	}
}

func TestABusyRangeIsSearchedWhereThePortIsFreeElsewhere(t *testing.T) {
	t.Parallel()
	p, f := newFaulty(t, syscall.EADDRINUSE, linuxRange)
	f.only = netip.MustParsePrefix(linuxRange)
	_, err := p.Create(t.Context(), providers.CreateRequest{Name: "proxy-a", UID: "u", Installation: "test", Port: 80})
	require.ErrorIs(t, err, providers.ErrQuotaExceeded)
	require.ErrorContains(t, err, "4096 were tried, the last one: listen: bind: address already in use")
	require.NotContains(t, err.Error(), "every address")
	require.Len(t, f.listens, maxCandidates+1)
}

func TestCheckSaysWhatAnAdministratorWouldDo(t *testing.T) {
	t.Parallel()
	p, _ := newFaulty(t, syscall.EACCES, linuxRange)
	for name, c := range map[string]struct {
		err  error
		want string
	}{
		"all is well":           {nil, providers.ReasonReachable},
		"out of time":           {context.DeadlineExceeded, providers.ReasonTimeout},
		"called off":            {context.Canceled, providers.ReasonTimeout},
		"no permission":         {&os.PathError{Op: "write", Path: "/x", Err: syscall.EACCES}, providers.ReasonForbidden},
		"a read-only disk":      {&os.PathError{Op: "write", Path: "/x", Err: syscall.EROFS}, providers.ReasonForbidden},
		"a disk that vanished":  {p.store.vanished(), providers.ReasonUnreachable},
		"a disk that is broken": {syscall.EIO, providers.ReasonUnreachable},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			status := p.status(c.err)
			require.Equal(t, c.want, status.Reason)
			require.Equal(t, c.err == nil, status.Ready)
			require.Equal(t, c.err != nil, status.Message != "")
		})
	}
}
