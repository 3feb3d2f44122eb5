package providertest_test

import (
	"context"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/otel/trace/noop"

	"github.com/egressfleet/egressfleet/providers"
	"github.com/egressfleet/egressfleet/providers/decorators"
	"github.com/egressfleet/egressfleet/testsuite/fake"
	"github.com/egressfleet/egressfleet/testsuite/providertest"
)

// patient lets time pass: every third look moves what is being made or removed on.
type patient struct {
	*fake.Faults
	looks atomic.Int32
}

const looksBetween = 3

func (p *patient) Unwrap() providers.Provider { return p.Faults }

func (p *patient) Get(ctx context.Context, id string) (*providers.Instance, error) {
	if p.looks.Add(1)%looksBetween == 0 {
		p.Finish(id)
		p.FinishDeletes()
	}
	return p.Faults.Get(ctx, id)
}

// faultsOf finds the fake under whatever the suite tests.
func faultsOf(t *testing.T, p providers.Provider) *fake.Faults {
	t.Helper()
	f, ok := providers.As[*fake.Faults](p)
	require.True(t, ok)
	return f
}

// suite is a suite over the fake with every hook.
func suite(wrap func(*fake.Faults) providers.Provider, opts ...fake.Option) providertest.Suite {
	return providertest.Suite{
		Name: "lab", Installation: fake.DefaultInstallation, Checker: true, Inventory: true, Poll: time.Millisecond,
		Secrets: []string{"hunter2"},
		New: func(*testing.T) providers.Provider {
			return wrap(fake.WithFaults(fake.New("lab", opts...)))
		},
		Reopen: func(t *testing.T, p providers.Provider) providers.Provider {
			return wrap(fake.WithFaults(faultsOf(t, p).Reopen()))
		},
		Plant: func(t *testing.T, p providers.Provider) []string {
			f := faultsOf(t, p)
			f.Plant(providers.Instance{ID: fake.ID("bare"), State: providers.StateRunning})
			f.Plant(providers.Instance{ID: fake.ID("theirs"), UID: "u", Installation: "prod", State: providers.StateRunning})
			return []string{fake.ID("bare"), fake.ID("theirs")}
		},
		Break: func(t *testing.T, p providers.Provider) func() {
			faultsOf(t, p).Break(providers.ErrTransient)
			return faultsOf(t, p).Heal
		},
		Stall: func(t *testing.T, p providers.Provider) func() {
			for _, op := range []string{providers.OpCreate, providers.OpGet, providers.OpDelete, providers.OpList} {
				faultsOf(t, p).Before(op, fake.Hanging)
			}
			return faultsOf(t, p).Heal
		},
		Leftovers: func(t *testing.T, p providers.Provider, uid string) (left []string) {
			for _, i := range faultsOf(t, p).Instances() {
				if i.UID == uid {
					left = append(left, i.ID)
				}
			}
			if w, ok := providers.As[*twisted](p); ok {
				left = append(left, w.stock.of(uid)...)
			}
			return left
		},
		Squat: squat,
		Neighbour: func(t *testing.T, p providers.Provider, installation string) providers.Provider {
			other := faultsOf(t, p).Reopen()
			fake.WithInstallation(installation)(other)
			return wrap(fake.WithFaults(other))
		},
		Backend: func(t *testing.T, p providers.Provider, see func(context.Context)) {
			for _, op := range []string{providers.OpCreate, providers.OpGet, providers.OpDelete, providers.OpList} {
				faultsOf(t, p).Before(op, func(ctx context.Context) error { see(ctx); return nil })
			}
		},
		Delivered: func(t *testing.T, p providers.Provider, id string) []byte {
			asked := faultsOf(t, p).Requests()
			at := slices.IndexFunc(asked, func(r providers.CreateRequest) bool { return fake.ID(r.Name) == id })
			require.GreaterOrEqual(t, at, 0)
			return asked[at].CloudInit
		},
		MaxCloudInit: maxCloudInit,
		FailHalfway: func(t *testing.T, p providers.Provider) func() {
			return stockOf(t, p).failHalfway()
		},
		Orphan: func(t *testing.T, p providers.Provider, req providers.CreateRequest) {
			stockOf(t, p).orphan(req)
		},
	}
}

// squat plants an instance that Create did not make. The fake knows an instance as its
// own by UID and installation; one without both is not managed.
func squat(t *testing.T, p providers.Provider, req providers.CreateRequest, missing string) {
	i := providers.Instance{
		ID: fake.ID(req.Name), State: providers.StateStopped, UID: req.UID, Installation: req.Installation,
	}
	switch missing {
	case providers.MarkUID:
		i.UID = ""
	case providers.MarkInstallation:
		i.Installation = ""
	case providers.MarkManaged:
		i.UID, i.Installation = "", ""
	}
	faultsOf(t, p).Plant(i)
}

// plain is a suite over the fake without a stock: there is nothing beside an instance.
func plain(s providertest.Suite) providertest.Suite {
	s.Orphan, s.FailHalfway, s.MaxCloudInit = nil, nil, 0
	return s
}

func TestTheFakeMeetsTheContract(t *testing.T) {
	t.Parallel()
	for name, opts := range map[string][]fake.Option{
		"when all is immediate":     {},
		"when deletes return early": {fake.WithSlowDelete()},
		"when instances provision":  {fake.WithProvisioning()},
		"when nothing is immediate": {fake.WithProvisioning(), fake.WithSlowDelete()},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			plain(suite(func(f *fake.Faults) providers.Provider { return &patient{Faults: f} }, opts...)).Run(t)
		})
	}
}

func TestTheFakeMeetsTheContractUnderItsDecorators(t *testing.T) {
	t.Parallel()
	plain(suite(func(f *fake.Faults) providers.Provider {
		metrics := decorators.NewMetrics(prometheus.NewRegistry())
		return decorators.Stack(f, "lab", noop.NewTracerProvider().Tracer("test"), metrics)
	})).Run(t)
}
