package local

import (
	"context"
	"net/netip"
	"os"
	"time"

	"golang.org/x/sys/unix"

	"github.com/egressfleet/egressfleet/providers"
)

// Hurry shortens how long a provider waits for a process to serve and to end.
func Hurry(p providers.Provider, ready, end time.Duration) {
	l := p.(*Provider)
	l.machine = system{executable: l.executable, readyWait: ready, endWait: end}
}

// Impatient shortens how long a call may take once its context has ended.
func Impatient(p providers.Provider, patience time.Duration) { p.(*Provider).patience = patience }

// Watch shows the context of every later call of the machine.
func Watch(p providers.Provider, see func(context.Context)) {
	l := p.(*Provider)
	l.machine = seen{l.machine, see}
}

// seen is a machine whose callers are looked at.
type seen struct {
	machine
	see func(context.Context)
}

func (s seen) listen(ctx context.Context, at netip.AddrPort) (*os.File, error) {
	s.see(ctx)
	return s.machine.listen(ctx, at)
}

func (s seen) start(ctx context.Context, folder string, listener *os.File) error {
	s.see(ctx)
	return s.machine.start(ctx, folder, listener)
}

func (s seen) awaitReady(ctx context.Context, folder string) (bool, error) {
	s.see(ctx)
	return s.machine.awaitReady(ctx, folder)
}

func (s seen) stop(ctx context.Context, folder string) error {
	s.see(ctx)
	return s.machine.stop(ctx, folder)
}

// Exhaust lets the system have no room for another socket until the returned function
// is called.
func Exhaust(p providers.Provider) (restore func()) {
	l := p.(*Provider)
	whole := l.machine
	l.machine = full{whole}
	return func() { l.machine = whole }
}

// full is a machine without room for another socket.
type full struct{ machine }

func (full) listen(context.Context, netip.AddrPort) (*os.File, error) {
	return nil, os.NewSyscallError("socket", unix.ENOBUFS)
}

// FailStarts lets no process start until the returned function is called: a Create
// has written its record by then.
func FailStarts(p providers.Provider) (heal func()) {
	l := p.(*Provider)
	whole := l.machine
	l.machine = barren{whole}
	return func() { l.machine = whole }
}

// barren is a machine that starts nothing.
type barren struct{ machine }

func (barren) start(context.Context, string, *os.File) error {
	return transient("the machine starts nothing")
}
