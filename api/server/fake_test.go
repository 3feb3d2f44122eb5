package server_test

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"log/slog"
	"net/http/httptest"
	"net/url"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/egressfleet/egressfleet/api/server"
	v1 "github.com/egressfleet/egressfleet/api/v1"
	"github.com/egressfleet/egressfleet/starter/fleet"
	"github.com/egressfleet/egressfleet/testsuite/output"
)

var _ server.Fleet = (*fleet.Client)(nil)

var birth = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

// fakeFleet keeps Proxies in memory, and fails or hangs when told to.
type fakeFleet struct {
	mu      sync.Mutex
	proxies map[string]v1.Proxy
	fail    error // of every call
	hang    bool  // every call waits for the end of its context
	late    error // what a call that hangs returns, instead of its context's error
	boom    any   // every call panics with it
	ids     []string
	reasons []string
	lists   []string
	left    []string // names that LeaveBehind was asked for
	told    []string // messages and their reasons
	events  []v1.Event
	limit   time.Duration // of the last call
	checks  map[string]v1.ProviderCheck
	rounds  int       // how often they were asked for
	first   time.Time // when the first one is due
	orphans v1.Collection
	batches []fleet.FeedbackBatch
	bans    fleet.Bans

	revision int64 // of what Follow returns; 0: it is always another list
}

func newFleet(proxies ...v1.Proxy) *fakeFleet {
	f := &fakeFleet{proxies: map[string]v1.Proxy{}}
	for _, p := range proxies {
		f.proxies[p.Metadata.Namespace+"/"+p.Metadata.Name] = p
	}
	return f
}

// set changes the fleet while a server uses it.
func (f *fakeFleet) set(change func(*fakeFleet)) {
	f.mu.Lock()
	defer f.mu.Unlock()
	change(f)
}

// enter is called, and left locked, by every call that neither fails nor hangs.
func (f *fakeFleet) enter(ctx context.Context) error {
	f.mu.Lock()
	if deadline, bounded := ctx.Deadline(); bounded {
		f.limit = time.Until(deadline)
	}
	switch {
	case f.boom != nil:
		defer f.mu.Unlock()
		panic(f.boom)
	case f.hang:
		late := f.late
		f.mu.Unlock()
		<-ctx.Done()
		return cmp.Or(late, ctx.Err())
	case f.fail != nil:
		defer f.mu.Unlock()
		return f.fail
	}
	return nil
}

func (f *fakeFleet) Apply(
	ctx context.Context, p v1.Proxy, r fleet.Request,
) (v1.Proxy, bool, error) {
	if err := f.enter(ctx); err != nil {
		return v1.Proxy{}, false, err
	}
	defer f.mu.Unlock()
	key := p.Metadata.Namespace + "/" + p.Metadata.Name
	was, there := f.proxies[key]
	if err := holds(was, there, r); err != nil {
		return v1.Proxy{}, false, err
	}
	if there && was.Spec.Provider != p.Spec.Provider {
		return v1.Proxy{}, false, &fleet.ConflictError{
			Field: "spec.provider", Value: p.Spec.Provider, Problem: `cannot change from "` + was.Spec.Provider + `"`,
		}
	}
	restored, err := p.Spec.Restored(was.Spec)
	if err != nil {
		return v1.Proxy{}, false, err
	}
	p.Spec = restored
	f.ids = append(f.ids, r.ID)
	p.Metadata.UID, p.Metadata.Generation, p.Metadata.CreatedAt = "uid-"+p.Metadata.Name, was.Metadata.Generation+1, birth
	p.Status = was.Status
	if !there {
		p.Status = v1.ProxyStatus{Phase: v1.PhasePending, Since: birth}
	}
	f.proxies[key] = p
	return p, !there, nil
}

func (f *fakeFleet) Get(ctx context.Context, namespace, name string) (v1.Proxy, error) {
	if err := f.enter(ctx); err != nil {
		return v1.Proxy{}, err
	}
	defer f.mu.Unlock()
	p, there := f.proxies[namespace+"/"+name]
	if !there {
		return v1.Proxy{}, fleet.ErrNotFound
	}
	return p, nil
}

func (f *fakeFleet) Delete(
	ctx context.Context, namespace, name, reason string, r fleet.Request,
) (v1.Proxy, error) {
	p, err := f.Get(ctx, namespace, name)
	if err == nil {
		err = holds(p, true, r)
	}
	if err != nil {
		return v1.Proxy{}, err
	}
	f.set(func(f *fakeFleet) { f.reasons = append(f.reasons, reason) })
	p.Status.Phase = v1.PhaseDeleting
	return p, nil
}

func (f *fakeFleet) LeaveBehind(
	ctx context.Context, namespace, name, reason string, r fleet.Request,
) (v1.Proxy, error) {
	p, err := f.Delete(ctx, namespace, name, reason, r)
	if err == nil {
		f.set(func(f *fakeFleet) { f.left = append(f.left, name) })
	}
	return p, err
}

func (f *fakeFleet) Replace(
	ctx context.Context, namespace, name, reason string, r fleet.Request,
) (v1.Proxy, error) {
	return f.tell(ctx, namespace, name, "replace: "+reason, r, func(p *v1.Proxy) error {
		if p.Status.Phase == v1.PhasePending {
			return &fleet.ConflictError{Field: "status.providerID", Problem: "is empty: there is no instance to replace"}
		}
		p.Status.Phase = v1.PhaseReplacing
		return nil
	})
}

func (f *fakeFleet) Retry(
	ctx context.Context, namespace, name, reason string, r fleet.Request,
) (v1.Proxy, error) {
	return f.tell(ctx, namespace, name, "retry: "+reason, r, func(*v1.Proxy) error { return nil })
}

func (f *fakeFleet) Hold(
	ctx context.Context, namespace, name string, h v1.Hold, r fleet.Request,
) (v1.Proxy, error) {
	return f.tell(ctx, namespace, name, "hold "+string(h.For)+": "+h.Reason, r, func(p *v1.Proxy) error {
		p.Status.Held = true
		return nil
	})
}

func (f *fakeFleet) Resume(
	ctx context.Context, namespace, name, reason string, r fleet.Request,
) (v1.Proxy, error) {
	return f.tell(ctx, namespace, name, "resume: "+reason, r, func(p *v1.Proxy) error {
		p.Status.Held = false
		return nil
	})
}

func (f *fakeFleet) tell(
	ctx context.Context, namespace, name, said string, r fleet.Request, change func(*v1.Proxy) error,
) (v1.Proxy, error) {
	p, err := f.Get(ctx, namespace, name)
	if err == nil {
		err = errors.Join(holds(p, true, r), change(&p))
	}
	if err != nil {
		return v1.Proxy{}, err
	}
	f.set(func(f *fakeFleet) {
		f.told, f.ids = append(f.told, said), append(f.ids, r.ID)
		f.proxies[namespace+"/"+name] = p
	})
	return p, nil
}

// holds is what a fleet says where a condition does not hold.
func holds(p v1.Proxy, there bool, r fleet.Request) error {
	switch want := r.IfGeneration; {
	case want == 0 || there && want == p.Metadata.Generation:
		return nil
	case !there:
		return fleet.ErrNotFound
	default:
		return &fleet.ConflictError{
			Field: "metadata.generation", Value: strconv.FormatInt(p.Metadata.Generation, 10), Problem: "is another one",
		}
	}
}

func (f *fakeFleet) Timeline(ctx context.Context, namespace, name string) ([]v1.Event, error) {
	if _, err := f.Get(ctx, namespace, name); err != nil {
		return nil, err
	}
	return f.events, nil
}

func (f *fakeFleet) List(ctx context.Context, namespace string) ([]v1.Proxy, error) {
	f.set(func(f *fakeFleet) { f.lists = append(f.lists, namespace) })
	if err := f.enter(ctx); err != nil {
		return nil, err
	}
	defer f.mu.Unlock()
	var found []v1.Proxy
	for _, p := range f.proxies {
		if namespace == "" || namespace == p.Metadata.Namespace {
			found = append(found, p)
		}
	}
	return found, nil
}

// Follow lists them, with a revision where the test gives one.
func (f *fakeFleet) Follow(ctx context.Context) (fleet.Living, error) {
	proxies, err := f.List(ctx, "")
	return fleet.Living{Proxies: proxies, Revision: f.revision}, err
}

func (f *fakeFleet) SendFeedback(ctx context.Context, b fleet.FeedbackBatch) error {
	if err := f.enter(ctx); err != nil {
		return err
	}
	defer f.mu.Unlock()
	f.batches = append(f.batches, b)
	return nil
}

func (f *fakeFleet) Bans(ctx context.Context, _ int64) (fleet.Bans, error) {
	if err := f.enter(ctx); err != nil {
		return fleet.Bans{}, err
	}
	defer f.mu.Unlock()
	return f.bans, nil
}

func (f *fakeFleet) Ready(ctx context.Context) error {
	if err := f.enter(ctx); err != nil {
		return err
	}
	f.mu.Unlock()
	return nil
}

// fakeClock stands still until it is moved, and ticks when it is told to.
type fakeClock struct {
	mu     sync.Mutex
	now    time.Time
	ticks  chan time.Time
	others map[time.Duration]chan time.Time
}

func newClock() *fakeClock {
	return &fakeClock{now: birth, ticks: make(chan time.Time), others: map[time.Duration]chan time.Time{}}
}

func (c *fakeClock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now
}

// Ticker is the snapshot's for a second, and of its own for any other period.
func (c *fakeClock) Ticker(period time.Duration) (<-chan time.Time, func()) {
	if period == time.Second {
		return c.ticks, func() {}
	}
	return c.of(period), func() {}
}

// of are the ticks of a period.
func (c *fakeClock) of(period time.Duration) chan time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.others[period] == nil {
		c.others[period] = make(chan time.Time)
	}
	return c.others[period]
}

func (c *fakeClock) move(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now = c.now.Add(d)
}

// running returns a Proxy that clients may use.
func running(namespace, name, ip string) v1.Proxy {
	healthy := true
	return v1.Proxy{
		Metadata: v1.Metadata{
			Namespace: namespace, Name: name, UID: "uid-" + name, Generation: 1,
			Labels: map[string]string{"team": "crawlers"}, CreatedAt: birth,
		},
		Spec: v1.ProxySpec{
			Provider: "gcp", Placement: v1.Placement{Region: "europe-west1", Zone: "europe-west1-b"}, Port: 3128,
			CloudInit: v1.CloudInit{SecretRef: &v1.SecretRef{Name: "squid", Key: "user-data"}},
		},
		Status: v1.ProxyStatus{
			Phase: v1.PhaseRunning, ProviderID: "europe-west1-b/proxy-x", IP: ip, EgressIP: ip,
			Healthy: &healthy, ObservedGeneration: 1, SpecHash: "v1:00ff", Since: birth, InstanceCreatedAt: birth,
			Conditions: []v1.Condition{{
				Type: v1.ConditionProvisioned, Status: v1.ConditionTrue, Reason: v1.ReasonCreated,
				Message: "running with an address", LastTransitionTime: birth,
			}},
		},
	}
}

func (f *fakeFleet) LastChecks(ctx context.Context) (time.Time, map[string]v1.ProviderCheck, error) {
	if err := f.enter(ctx); err != nil {
		return time.Time{}, nil, err
	}
	defer f.mu.Unlock()
	f.rounds++
	if f.checks == nil && !f.first.IsZero() {
		return time.Time{}, nil, &fleet.FirstRunError{Schedule: "provider-check", At: f.first}
	}
	if f.checks == nil {
		return time.Time{}, nil, fleet.ErrNoRun
	}
	return birth.Add(time.Minute), f.checks, nil
}

func (f *fakeFleet) LastCollection(ctx context.Context) (v1.Collection, error) {
	if err := f.enter(ctx); err != nil {
		return v1.Collection{}, err
	}
	defer f.mu.Unlock()
	return f.orphans, nil
}

// stage is a server with everything that a test looks at.
type stage struct {
	tls       *tls.Config // nil: plain
	fleet     *fakeFleet
	clock     *fakeClock
	log       *output.Log
	providers *v1.ProviderList // nil: the process has none to tell of
	server    *server.Server
	keys      server.Keys // nil: no token is asked for
}

// configured are two providers, of which a load has kept one.
func configured() *v1.ProviderList {
	return &v1.ProviderList{
		Configuration: v1.ProviderConfiguration{
			State: v1.ConfigurationLoaded, File: "providers.yaml", LoadedAt: birth.Add(time.Second),
		},
		Items: []v1.Provider{
			{Name: "gcp", Type: "gcp", LoadedAt: birth.Add(time.Second)},
			{
				Name: "local", Type: "local", LoadedAt: birth,
				Profile: map[string]string{"quota": "absent", "readiness": "immediate"},
			},
		},
	}
}

func newStage(proxies ...v1.Proxy) *stage { return newStageWith(nil, proxies...) }

// newStageWith requires the tokens of keys.
func newStageWith(keys server.Keys, proxies ...v1.Proxy) *stage {
	s := &stage{fleet: newFleet(proxies...), clock: newClock(), log: new(output.Log), providers: configured(), keys: keys}
	logger := slog.New(slog.NewJSONHandler(s.log, &slog.HandlerOptions{Level: slog.LevelDebug}))
	s.server = server.New(s.fleet, server.Options{
		Logger: logger, Clock: s.clock, Keys: keys,
		Providers: func() (v1.ProviderList, bool) {
			if s.providers == nil {
				return v1.ProviderList{}, false
			}
			return *s.providers, true
		},
	})
	return s
}

// ask sends a request to the handler itself. A body is sent as JSON, unless the
// headers say otherwise; headers alternate names and values.
func (s *stage) ask(t *testing.T, method, target, body string, headers ...string) *httptest.ResponseRecorder {
	t.Helper()
	return s.askWithin(t.Context(), method, target, body, headers...)
}

// askWithin is ask for a client that goes when ctx ends.
func (s *stage) askWithin(
	ctx context.Context, method, target, body string, headers ...string,
) *httptest.ResponseRecorder {
	r := httptest.NewRequestWithContext(ctx, method, "http://127.0.0.1/", strings.NewReader(body))
	u, err := url.ParseRequestURI(target) // as net/http has it: dots and double slashes stay
	if err != nil {                       // also of a goroutine, which must not end the test
		panic(err)
	}
	r.URL, r.RequestURI = u, target
	if body != "" {
		r.Header.Set("Content-Type", "application/json")
	}
	for i := 0; i < len(headers); i += 2 {
		r.Header.Add(headers[i], headers[i+1])
		if headers[i] == "Content-Type" {
			r.Header["Content-Type"] = []string{headers[i+1]}
		}
	}
	answer := httptest.NewRecorder()
	s.server.Handler().ServeHTTP(answer, r)
	return answer
}
