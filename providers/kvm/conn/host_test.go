package conn_test

import (
	"context"
	"errors"
	"io"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/digitalocean/go-libvirt"
	"github.com/stretchr/testify/require"

	"github.com/egressfleet/egressfleet/providers/kvm/conn"
)

// Calls that tests let hang.
const (
	procHypervisor = 4 // ConnectGetVersion
	procMaxVcpus   = 5 // ConnectGetMaxVcpus
)

func hypervisor(l *libvirt.Libvirt) error {
	_, err := l.ConnectGetVersion()
	return err
}

// background runs a call and hands its error over.
func background(run func() error) <-chan error {
	result := make(chan error, 1)
	go func() { result <- run() }()
	return result
}

func TestManyCallersDialOnce(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newSSHD(t)
		thaw := s.libvirtd.freeze()
		host := s.host()
		var calls sync.WaitGroup
		var passed atomic.Int32
		for range 50 {
			calls.Go(func() {
				if host.Do(t.Context(), version) == nil {
					passed.Add(1)
				}
			})
		}
		synctest.Wait()
		thaw()
		calls.Wait()
		require.EqualValues(t, 50, passed.Load())
		require.Equal(t, 1, s.dialled())
	})
}

// TestCallerLeavesADial: who dialled first leaves, and who waits with him is served.
func TestCallerLeavesADial(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newSSHD(t)
		thaw := s.libvirtd.freeze()
		host := s.host()
		ctx, cancel := context.WithCancel(t.Context())
		first := background(func() error { return host.Do(ctx, version) })
		synctest.Wait()
		second := background(func() error { return host.Do(t.Context(), version) })
		synctest.Wait()
		cancel()
		err := <-first
		require.Equal(t, conn.Canceled, failure(t, err).Reason)
		require.ErrorIs(t, err, context.Canceled)
		thaw()
		require.NoError(t, <-second)
		require.Equal(t, 1, s.dialled())
	})
}

// TestEveryoneLeavesADial: it is given up, and the next caller does not wait for it.
func TestEveryoneLeavesADial(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newSSHD(t)
		s.faults.silent = true
		host := s.host()
		ctx, cancel := context.WithCancel(t.Context())
		first := background(func() error { return host.Do(ctx, version) })
		synctest.Wait()
		s.set(func(f *faults) { f.silent = false })
		cancel()
		require.Error(t, <-first)
		began := time.Now()
		require.NoError(t, host.Do(t.Context(), version))
		require.Zero(t, time.Since(began))
		require.Equal(t, 2, s.dialled())
	})
}

func TestNothingBeginsWithoutACaller(t *testing.T) {
	t.Parallel()
	s := newSSHD(t)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	err := s.host().Do(ctx, func(*libvirt.Libvirt) error { panic("it was called") })
	require.Equal(t, conn.Canceled, failure(t, err).Reason)
	require.Zero(t, s.dialled())
}

// TestCancelledCallDisturbsNobody: the connection stays, for the calls that are under way and for
// new ones, as long as libvirt answers; and what goes on for too long gets it replaced without
// harm to those who still use it.
func TestCancelledCallDisturbsNobody(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newSSHD(t)
		s.libvirtd.handle(procHypervisor, func(packet, func(packet)) {}) // never answers
		release := s.libvirtd.hold(t, procMaxVcpus)
		host := s.host()
		ended := make(chan error, 1)
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		stuck := background(func() error {
			return host.Do(ctx, func(l *libvirt.Libvirt) error {
				err := hypervisor(l)
				ended <- err
				return err
			})
		})
		synctest.Wait()
		long := background(func() error {
			return host.Do(t.Context(), func(l *libvirt.Libvirt) error { _, err := l.ConnectGetMaxVcpus(nil); return err })
		})
		require.Equal(t, conn.Timeout, failure(t, <-stuck).Reason)
		require.NoError(t, host.Do(t.Context(), version))
		<-time.After(conn.DefaultStuckAfter - time.Second)
		require.NoError(t, host.Do(t.Context(), version))
		require.Equal(t, 1, s.dialled(), "libvirt answers, so all is well")

		<-time.After(2 * time.Second)
		require.NoError(t, host.Do(t.Context(), version))
		require.Equal(t, 2, s.dialled(), "the call hangs: new ones go elsewhere")
		require.Equal(t, 2, s.connected(), "and the one that is under way goes on")
		require.Empty(t, long)
		require.Empty(t, ended)

		release()
		require.NoError(t, <-long)
		require.ErrorIs(t, <-ended, libvirt.ErrInterrupted, "nobody uses it any more, so it ends")
		synctest.Wait()
		require.Equal(t, 1, s.connected())
		require.NoError(t, host.Do(t.Context(), version))
		require.Equal(t, 2, s.dialled())
	})
}

// TestFrozenLibvirtIsDropped: a caller that leaves has libvirt asked, and its silence ends the
// connection for all, since nobody can use it.
func TestFrozenLibvirtIsDropped(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newSSHD(t)
		host := s.host()
		require.NoError(t, host.Do(t.Context(), version))
		thaw := s.libvirtd.freeze()
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		began := time.Now()
		other := background(func() error { return host.Do(t.Context(), hypervisor) })
		require.Equal(t, conn.Timeout, failure(t, host.Do(ctx, hypervisor)).Reason)
		require.Equal(t, time.Second, time.Since(began))
		lost := failure(t, <-other)
		require.Equal(t, conn.ConnectionLost, lost.Reason)
		require.Contains(t, lost.Error(), "libvirt was silent for 10s")
		require.Equal(t, time.Second+conn.DefaultPingTimeout, time.Since(began))
		thaw()
		require.NoError(t, host.Do(t.Context(), hypervisor))
		require.Equal(t, 2, s.dialled())
	})
}

// TestBusyConnectionIsNotDropped: an upload over a slow link keeps libvirt's answer waiting.
func TestBusyConnectionIsNotDropped(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newSSHD(t)
		s.libvirtd.handle(procVolUpload, func(p packet, send func(packet)) {
			switch {
			case p.kind == typeCall:
				send(p.reply(statusOK))
			case p.status == statusContinue:
				<-time.After(conn.DefaultPingTimeout * 3 / 2) // nobody else is served meanwhile
			default:
				send(p.stream(statusOK))
			}
		})
		host := s.host()
		upload := background(func() error {
			return host.Do(t.Context(), func(l *libvirt.Libvirt) error {
				return l.StorageVolUpload(libvirt.StorageVol{}, &slow{left: 10}, 0, 10*slowRead, 0)
			})
		})
		<-time.After(5 * time.Second) // libvirt is busy with the first packet
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		require.Equal(t, conn.Timeout, failure(t, host.Do(ctx, version)).Reason)
		require.NoError(t, <-upload)
		require.Equal(t, 1, s.dialled())
	})
}

// slow reads slowRead bytes every four seconds.
type slow struct{ left int }

const slowRead = 64 << 10

func (s *slow) Read(p []byte) (int, error) {
	if s.left == 0 {
		return 0, io.EOF
	}
	s.left--
	<-time.After(4 * time.Second)
	return min(len(p), slowRead), nil
}

func TestSilentSSHDIsDropped(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newSSHD(t)
		host := s.host()
		require.NoError(t, host.Do(t.Context(), version))
		<-time.After(time.Hour)
		require.NoError(t, host.Do(t.Context(), version))
		require.Equal(t, 1, s.dialled(), "a quiet hour is no silence")

		s.set(func(f *faults) { f.ignoresKeepalives = true })
		s.t.Cleanup(s.libvirtd.freeze())
		began := time.Now()
		lost := failure(t, host.Do(t.Context(), hypervisor))
		require.Equal(t, conn.ConnectionLost, lost.Reason)
		require.Contains(t, lost.Error(), "sshd was silent for 15s")
		require.LessOrEqual(t, time.Since(began), conn.DefaultKeepaliveInterval+conn.DefaultKeepaliveTimeout)
	})
}

// TestBusySSHDIsNotDropped: behind much data its answer may be late.
func TestBusySSHDIsNotDropped(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newSSHD(t)
		s.faults.ignoresKeepalives = true
		host := s.host()
		for range 12 {
			require.NoError(t, host.Do(t.Context(), version))
			<-time.After(10 * time.Second)
		}
		require.Equal(t, 1, s.dialled())
		<-time.After(conn.DefaultKeepaliveInterval + 2*conn.DefaultKeepaliveTimeout)
		require.NoError(t, host.Do(t.Context(), version))
		require.Equal(t, 2, s.dialled(), "and then it was silent")
	})
}

// TestCutOff: the calls that are under way learn of it at once, and the next one dials.
func TestCutOff(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newSSHD(t)
		s.libvirtd.hold(t, procHypervisor)
		host := s.host()
		call := background(func() error { return host.Do(t.Context(), hypervisor) })
		hears := make(chan struct{})
		defer close(hears)
		deaf := background(func() error {
			return host.Do(t.Context(), func(*libvirt.Libvirt) error { <-hears; return nil })
		})
		synctest.Wait()
		s.cut()
		began := time.Now()
		err := <-call
		require.Equal(t, conn.ConnectionLost, failure(t, err).Reason)
		require.ErrorIs(t, err, libvirt.ErrInterrupted)
		require.Zero(t, time.Since(began))
		require.Equal(t, conn.ConnectionLost, failure(t, <-deaf).Reason)
		require.LessOrEqual(t, time.Since(began), 2*time.Second)
		require.NoError(t, host.Do(t.Context(), version))
		require.Equal(t, 2, s.dialled())
	})
}

// TestCallsAfterTheEnd: what libvirt's client says then names no cause.
func TestCallsAfterTheEnd(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newSSHD(t)
		err := s.host().Do(t.Context(), func(l *libvirt.Libvirt) error {
			s.cut()
			synctest.Wait()
			return version(l)
		})
		lost := failure(t, err)
		require.Equal(t, conn.ConnectionLost, lost.Reason)
		require.False(t, lost.Permanent())
	})
}

// TestErrorsOfACallArePassedOn: those of libvirt, and those that have nothing to do with it.
func TestErrorsOfACallArePassedOn(t *testing.T) {
	t.Parallel()
	s := newSSHD(t)
	host := s.host()
	err := host.Do(t.Context(), func(l *libvirt.Libvirt) error { _, err := l.DomainLookupByName("x"); return err })
	require.Equal(t, libvirt.Error{Code: codeNoDomain, Message: "Domain not found"}, err)
	other := errors.New("checksum")
	require.Equal(t, other, host.Do(t.Context(), func(*libvirt.Libvirt) error { return other }))
	require.Equal(t, 1, s.dialled())
}

func TestCallHandsAResultOver(t *testing.T) {
	t.Parallel()
	s := newSSHD(t)
	host := s.host()
	number, err := conn.Call(t.Context(), host.Do, (*libvirt.Libvirt).ConnectGetLibVersion)
	require.NoError(t, err)
	require.EqualValues(t, 9_000_000, number)
	number, err = conn.Call(t.Context(), host.Probe, func(*libvirt.Libvirt) (uint64, error) { return 7, io.EOF })
	require.ErrorIs(t, err, io.EOF)
	require.Zero(t, number)
}

func TestPanicIsTheCallers(t *testing.T) {
	t.Parallel()
	s := newSSHD(t)
	host := s.host()
	for name, do := range map[string]conn.Doer{"do": host.Do, "probe": host.Probe} {
		require.PanicsWithValue(t, "on purpose", func() {
			_ = do(t.Context(), func(*libvirt.Libvirt) error { panic("on purpose") })
		}, name)
	}
	err := host.Do(t.Context(), func(*libvirt.Libvirt) error { runtime.Goexit(); return nil })
	require.ErrorContains(t, err, "ended its goroutine")
	require.NoError(t, host.Do(t.Context(), version))
}

// TestProbeIsApart: it shares nothing with the others, and leaves nothing.
func TestProbeIsApart(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newSSHD(t)
		host := s.host()
		require.NoError(t, host.Do(t.Context(), version))
		require.NoError(t, host.Probe(t.Context(), version))
		synctest.Wait()
		require.Equal(t, 2, s.dialled())
		require.Equal(t, 1, s.connected())
		require.Equal(t, 1, s.libvirtd.calls(procClose))

		thaw := s.libvirtd.freeze()
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		err := host.Probe(ctx, version)
		require.Equal(t, conn.Timeout, failure(t, err).Reason)
		synctest.Wait()
		require.Equal(t, 1, s.connected())
		thaw()
		require.NoError(t, host.Do(t.Context(), version))
		require.Equal(t, 3, s.dialled(), "the shared connection was not touched")
	})
}

// TestProbeThatHangs: nobody else uses its connection, so that it ends with its caller.
func TestProbeThatHangs(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newSSHD(t)
		s.libvirtd.handle(procHypervisor, func(packet, func(packet)) {})
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		began := time.Now()
		require.Equal(t, conn.Timeout, failure(t, s.host().Probe(ctx, hypervisor)).Reason)
		require.Equal(t, time.Second, time.Since(began))
		synctest.Wait()
		require.Zero(t, s.connected())
	})
}

func TestClose(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newSSHD(t)
		host := s.host()
		require.NoError(t, host.Do(t.Context(), version))
		require.NoError(t, host.Close())
		require.Equal(t, 1, s.libvirtd.calls(procClose), "libvirt was told")
		require.NoError(t, host.Close())
		for _, do := range []conn.Doer{host.Do, host.Probe} {
			require.Equal(t, conn.Closed, failure(t, do(t.Context(), version)).Reason)
		}
		require.Equal(t, 1, s.dialled(), "nobody dials for those who come later")
		synctest.Wait()
		require.Zero(t, s.connected())
	})
}

// TestCloseNeverHangs: whatever libvirt and the calls do.
func TestCloseNeverHangs(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		begin func(*sshd, *conn.Host) <-chan error
		takes time.Duration
	}{
		"libvirt is frozen": {func(s *sshd, host *conn.Host) <-chan error {
			require.NoError(s.t, host.Do(s.t.Context(), version))
			s.t.Cleanup(s.libvirtd.freeze())
			return nil
		}, conn.DefaultCloseTimeout},
		"a call is under way": {func(s *sshd, host *conn.Host) <-chan error {
			s.libvirtd.handle(procHypervisor, func(packet, func(packet)) {})
			return background(func() error { return host.Do(s.t.Context(), hypervisor) })
		}, 0},
		"a dial is under way": {func(s *sshd, host *conn.Host) <-chan error {
			s.set(func(f *faults) { f.hangsInHandshake = true })
			return background(func() error { return host.Do(s.t.Context(), version) })
		}, 0},
		"a probe is under way": {func(s *sshd, host *conn.Host) <-chan error {
			s.set(func(f *faults) { f.hangsInHandshake = true })
			return background(func() error { return host.Probe(s.t.Context(), version) })
		}, 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				s := newSSHD(t)
				host := s.host()
				waiting := c.begin(s, host)
				synctest.Wait()
				began := time.Now()
				require.NoError(t, host.Close())
				require.Equal(t, c.takes, time.Since(began))
				if waiting != nil {
					require.Error(t, <-waiting)
				}
				require.Equal(t, c.takes, time.Since(began), "who waits is let go")
			})
		})
	}
}

// TestAbandonedCallsAreBounded: each connection may hold some, and all together.
func TestAbandonedCallsAreBounded(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newSSHD(t)
		host := s.host(func(c *conn.Config) { c.MaxAbandoned = 8 })
		hang := make(chan struct{})
		leave := func() error {
			ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
			defer cancel()
			return host.Do(ctx, func(*libvirt.Libvirt) error { <-hang; return nil })
		}
		for range 8 {
			require.Equal(t, conn.Timeout, failure(t, leave()).Reason)
		}
		require.Equal(t, 4, s.dialled(), "two are left on one connection")
		full := failure(t, leave())
		require.Equal(t, conn.Overloaded, full.Reason)
		require.False(t, full.Permanent())
		require.Equal(t, conn.Overloaded, failure(t, host.Probe(t.Context(), version)).Reason)
		close(hang)
		synctest.Wait()
		require.NoError(t, host.Do(t.Context(), version))
	})
}

// TestRefusedUploads: libvirt refuses what is longer than was declared, and answers once more to
// what was already on its way. Libvirt's client would wait for ever with its lock held.
func TestRefusedUploads(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newSSHD(t)
		s.libvirtd.handle(procVolUpload, func(p packet, send func(packet)) {
			if p.kind == typeCall {
				send(p.reply(statusOK))
				send(p.stream(statusError, libvirtError(codeSystemError, "cannot write to stream: No space left on device")...))
			}
			send(p.reply(statusOK)) // as for all that comes for a stream that has ended
		})
		host := s.host()
		for range 100 {
			err := host.Do(t.Context(), func(l *libvirt.Libvirt) error {
				return l.StorageVolUpload(libvirt.StorageVol{}, strings.NewReader(strings.Repeat("x", 100)), 0, 10, 0)
			})
			require.ErrorContains(t, err, "No space left")
		}
		require.NoError(t, host.Do(t.Context(), version))
		require.Equal(t, 1, s.dialled())
	})
}

// TestThousandConnects leaves no goroutine: the bubble does not end before all have, and TestMain
// looks again.
func TestThousandConnects(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newSSHD(t)
		host := s.host()
		began := runtime.NumGoroutine()
		for i := range 1000 {
			switch i % 4 {
			case 0:
				require.NoError(t, host.Probe(t.Context(), version))
			case 1:
				require.NoError(t, host.Do(t.Context(), version))
				s.cut()
				synctest.Wait()
			case 2:
				s.set(func(f *faults) { f.cutsOffInOpening = true })
				require.Error(t, host.Do(t.Context(), version))
				s.set(func(f *faults) { f.cutsOffInOpening = false })
			case 3:
				s.set(func(f *faults) { f.refusesKeys = true })
				require.Error(t, host.Do(t.Context(), version))
				s.set(func(f *faults) { f.refusesKeys = false })
			}
		}
		synctest.Wait()
		require.Equal(t, 1000, s.dialled())
		require.Zero(t, s.connected())
		require.Less(t, runtime.NumGoroutine(), began+100, "other tests run meanwhile")
	})
}
