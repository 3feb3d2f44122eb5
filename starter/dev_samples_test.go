package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	v1 "github.com/egressfleet/egressfleet/api/v1"
	"github.com/egressfleet/egressfleet/starter/fleet"
)

// devServer is an API and a forward proxy in one: the sample becomes Running after
// some looks, and carries traffic after some requests.
type devServer struct {
	pending, broken atomic.Int32
	unlisted        atomic.Int32 // lists without it
	through         atomic.Int32
	onBroken        func()
	failure         *v1.Condition // while pending
	phase           v1.Phase      // while pending; empty: Provisioning
	next            time.Time     // when pending ends by itself
	at              *net.TCPAddr
}

func (s *devServer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	switch {
	case r.URL.IsAbs(): // asked as a proxy
		if s.broken.Add(-1) >= 0 {
			http.Error(w, "not yet", http.StatusBadGateway)
			if s.onBroken != nil {
				s.onBroken()
			}
			return
		}
		s.through.Add(1)
	case strings.HasPrefix(r.URL.Path, "/v1/namespaces/default/proxies/sample-"):
		p := v1.Proxy{Metadata: v1.Metadata{Namespace: "default", Name: r.URL.Path[len("/v1/namespaces/default/proxies/"):]}}
		p.Status.Phase, p.Status.IP, p.Spec.Port = v1.PhaseProvisioning, s.at.IP.String(), s.at.Port
		if s.pending.Add(-1) < 0 {
			p.Status.Phase = v1.PhaseRunning
		} else if s.failure != nil {
			p.Status.Phase, p.Status.NextAttemptAt = s.phase, s.next
			p.Status.Conditions = []v1.Condition{*s.failure}
		}
		_ = json.NewEncoder(w).Encode(p)
	case r.URL.Path == "/v1/discovery":
		if s.unlisted.Add(-1) < 0 {
			_, _ = fmt.Fprintln(w, "http://"+s.at.String())
		}
	default:
		http.NotFound(w, r)
	}
}

func newDevRun(t *testing.T, s *devServer, out *strings.Builder) *devRun {
	t.Helper()
	server := httptest.NewServer(s)
	t.Cleanup(server.Close)
	s.at = server.Listener.Addr().(*net.TCPAddr)
	return &devRun{
		app: &app{Streams: Streams{Out: out}}, settings: devSettings{api: devPort{port: s.at.Port}, dir: "/d"},
	}
}

func TestSamplesAreReadyWhenARequestWentThroughEachAndDiscoveryListsThem(t *testing.T) {
	t.Parallel()
	var out strings.Builder
	s := &devServer{}
	s.pending.Store(2)
	s.broken.Store(1)
	s.unlisted.Store(1)
	r := newDevRun(t, s, &out)
	require.NoError(t, r.waitSamples(t.Context()))
	require.Equal(t, int32(3), s.through.Load(), "once more, since the first list did not have it")
	at := "127.0.0.1:" + strconv.Itoa(s.at.Port)
	require.Equal(t, "  default/sample-a: Provisioning at "+at+"\n  default/sample-a: Running at "+at+
		"\n  default/sample-b: Running at "+at+"\n", out.String())

	require.NoError(t, r.printPage(t.Context()))
	require.Contains(t, out.String(), "-x http://"+at+" http://"+at+"/healthz\n")
	require.True(t, strings.HasSuffix(out.String(), "\negressfleet is ready\n"))
}

func TestWaitingForSamplesEndsWithTheLastFault(t *testing.T) {
	t.Parallel()
	gone := errors.New("the worker is gone")
	ctx, cancel := context.WithCancelCause(t.Context())
	s := &devServer{onBroken: func() { cancel(gone) }}
	s.broken.Store(1 << 20)
	r := newDevRun(t, s, &strings.Builder{})
	err := r.waitSamples(ctx)
	require.ErrorIs(t, err, gone)
	require.ErrorContains(t, err, "default/sample-a")
}

func TestWaitingForSamplesEndsAtOnceWhereItIsInVain(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		reason string
		phase  v1.Phase
	}{
		"no room for it":    {v1.ReasonQuotaExceeded, v1.PhasePending},
		"refused for good":  {v1.ReasonPermanentError, v1.PhaseBlocked},
		"blocked otherwise": {v1.ReasonCreateFailed, v1.PhaseBlocked},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := &devServer{phase: c.phase, failure: failed(c.reason, "port 3128 is taken")}
			s.next = time.Now().Add(time.Hour)
			s.pending.Store(1 << 20)
			var out strings.Builder
			err := newDevRun(t, s, &out).waitSamples(t.Context())
			require.ErrorContains(t, err, "default/sample-a: "+string(c.phase)+" ("+c.reason+")")
			require.ErrorContains(t, err, "port 3128 is taken")
			require.ErrorContains(t, err, "make run")
			require.Equal(t, int32(1<<20-1), s.pending.Load(), "it looked once")
		})
	}
}

func TestWaitingForSamplesShowsWhyAndGoesOn(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]*devServer{
		"a fault that passes": {phase: v1.PhaseProvisioning, failure: failed(v1.ReasonTransientError, "the disk\nis slow")},
		"a retry that was just asked for": {
			phase: v1.PhaseBlocked, failure: failed(v1.ReasonPermanentError, "the disk is slow"),
		},
		"an attempt that is due": {
			phase: v1.PhasePending, failure: failed(v1.ReasonQuotaExceeded, "the disk is slow"),
			next: time.Now().Add(-time.Second),
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c.pending.Store(1)
			var out strings.Builder
			require.NoError(t, newDevRun(t, c, &out).waitSamples(t.Context()))
			require.Contains(t, out.String(), ": the disk is slow\n")
		})
	}
}

func failed(reason, message string) *v1.Condition {
	return &v1.Condition{Type: v1.ConditionProvisioned, Status: v1.ConditionFalse, Reason: reason, Message: message}
}

// slowFleet refuses some times before it applies.
type slowFleet struct {
	fakeFleet
	faults []error
}

func (f *slowFleet) Apply(
	ctx context.Context, p v1.Proxy, r fleet.Request,
) (v1.Proxy, bool, error) {
	if len(f.faults) > 0 {
		err := f.faults[0]
		f.faults = f.faults[1:]
		return v1.Proxy{}, false, err
	}
	return f.fakeFleet.Apply(ctx, p, r)
}

func TestASampleIsAppliedOnceTheWorkerIsThere(t *testing.T) {
	t.Parallel()
	f := &slowFleet{faults: []error{
		fmt.Errorf("%w: no worker", fleet.ErrUnavailable),
		&fleet.ConflictError{Field: "metadata.name", Problem: "is being deleted"},
	}}
	p := v1.Proxy{Metadata: v1.Metadata{Namespace: "default", Name: "sample-a"}}
	require.NoError(t, new(devRun).applySample(t.Context(), f, p))
	require.Equal(t, []string{"apply default/sample-a"}, f.asked)
}

func TestASampleThatCanNeverBeAppliedIsAFailureAtOnce(t *testing.T) {
	t.Parallel()
	wrong := &v1.FieldError{Field: "spec.port", Value: "0", Problem: "is not within 1 to 65535"}
	f := &slowFleet{faults: []error{wrong, nil}}
	require.ErrorIs(t, new(devRun).applySample(t.Context(), f, v1.Proxy{}), wrong)
	require.Len(t, f.faults, 1)
}
