package providertest_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strconv"
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

// pace lets what takes time move on by itself.
const pace = 3

// maxCloudInit is the limit of the fake, in bytes: below what the suite likes to send.
const maxCloudInit = 16 << 10

// faultsOf finds the fake under whatever the suite tests.
func faultsOf(t *testing.T, p providers.Provider) *fake.Faults {
	t.Helper()
	f, ok := providers.As[*fake.Faults](p)
	require.True(t, ok)
	return f
}

// suite is a suite over the fake with every hook.
func suite(wrap func(*fake.Faults) providers.Provider, opts ...fake.Option) providertest.Suite {
	source, limit := &source{}, fake.WithMaxCloudInit(maxCloudInit)
	return providertest.Suite{
		Name: "lab", Installation: fake.DefaultInstallation, Poll: time.Millisecond,
		Checker: true, Inventory: true, ListsState: true,
		Secrets: []string{secret},
		New: func(t *testing.T) providers.Provider {
			return wrap(fake.WithFaults(fake.New("lab", append(opts, limit, source.option(t, opts))...)))
		},
		Lab: lab(wrap, source),
	}
}

// plant puts there what is not the provider's, in the form of its own IDs.
func plant(t *testing.T, p providers.Provider) []string {
	f := faultsOf(t, p)
	bare, theirs := fake.ID("bare"), fake.ID("theirs")
	if f.Profile().PrimaryKey == providers.KeyAllocated {
		bare, theirs = "mem/7-bare", "mem/8-theirs"
	}
	f.Plant(providers.Instance{ID: bare, State: providers.StateRunning, IP: "127.9.0.1"})
	f.Plant(providers.Instance{ID: theirs, UID: "u", Installation: "prod", State: providers.StateRunning, IP: "127.9.0.2"})
	return []string{bare, theirs}
}

func lab(wrap func(*fake.Faults) providers.Provider, source *source) providertest.Lab {
	return providertest.Lab{
		Reopen: func(t *testing.T, p providers.Provider) providers.Provider {
			return wrap(fake.WithFaults(faultsOf(t, p).Reopen()))
		},
		Neighbour: func(t *testing.T, p providers.Provider, installation string) providers.Provider {
			other := faultsOf(t, p).Reopen()
			fake.WithInstallation(installation)(other)
			return wrap(fake.WithFaults(other))
		},
		Plant: plant, Squat: squat, Orphan: orphan,
		Leftovers: func(t *testing.T, p providers.Provider, uid string) (left []string) {
			return faultsOf(t, p).Resources(providers.NameFromUID(uid))
		},
		Delivered: delivered, MaxCloudInit: maxCloudInit, Backend: showContexts,
		Unprepare: func(t *testing.T, p providers.Provider) func() { return faultsOf(t, p).Unprepare("image a on host b") },

		Break:   func(t *testing.T, p providers.Provider) func() { return faultsOf(t, p).CutOff() },
		Stall:   func(t *testing.T, p providers.Provider) func() { return faultsOf(t, p).Stall() },
		HalfWay: halfWay(dies),
		Part: &providertest.Part{
			Name:  fake.Elsewhere,
			Place: func(req *providers.CreateRequest) { req.Placement.Zone = fake.Elsewhere },
			Cut:   func(t *testing.T, p providers.Provider) func() { return faultsOf(t, p).CutOff(fake.Elsewhere) },
		},
		Mount:   source.mount,
		Refuse:  func(t *testing.T, p providers.Provider) func() { return faultsOf(t, p).Deny() },
		Exhaust: func(t *testing.T, p providers.Provider) func() { return faultsOf(t, p).Exhaust() },
		Confuse: func(t *testing.T, p providers.Provider) func() { return faultsOf(t, p).Confuse() },
		Silence: func(t *testing.T, p providers.Provider) func() { return faultsOf(t, p).Silence() },
		Lag:     func(t *testing.T, p providers.Provider) func() { return faultsOf(t, p).Lag(5) },
		FailLate: func(t *testing.T, p providers.Provider, class providers.Class) {
			faultsOf(t, p).FailCreate(class, "the task says so")
		},
		Lock: func(t *testing.T, p providers.Provider, id string) func() { return faultsOf(t, p).Lock(id) },
		PowerOff: func(t *testing.T, p providers.Provider, id string) {
			faultsOf(t, p).SetState(id, providers.StateStopped)
		},
		Odd: func(t *testing.T, p providers.Provider, id string) { faultsOf(t, p).SetState(id, "WEIRD") },
	}
}

// halfWay ends creates once they have made something.
func halfWay(how func() error) func(*testing.T, providers.Provider) func() {
	return func(t *testing.T, p providers.Provider) func() {
		f := faultsOf(t, p)
		return f.StopAfter(firstMade(f), how)
	}
}

// firstMade is the backend call after which a create is half made.
func firstMade(f *fake.Faults) string {
	switch {
	case f.Profile().GCMark == providers.MarkWindow, f.Profile().SecondaryResources == providers.SecondaryNone:
		return "instances.insert"
	default:
		return "volumes.insert"
	}
}

func dies() error { panic("the worker dies") }

func fails() error { return errors.New("the connection is lost") }

// secret is in every credential.
const secret = "hunter2"

// source is where the fake finds its credential: a file, a variable or an identity.
type source struct {
	path  string // of the file, where there is one
	token atomic.Pointer[string]
	turn  atomic.Int32
}

var errNoToken = errors.New("the identity endpoint has no token yet")

// option returns what gives a provider of the profile this source.
func (s *source) option(t *testing.T, opts []fake.Option) fake.Option {
	axis := fake.New("", opts...).Profile().Credentials
	if axis == providers.CredentialsMountedFiles {
		s.path = filepath.Join(t.TempDir(), "credential")
	}
	s.rotate(t)
	switch axis {
	case providers.CredentialsMountedFiles:
		return fake.WithCredentialFile(s.path)
	case providers.CredentialsEnvironment:
		return fake.WithEnviron("FAKE_TOKEN", func(string) (string, bool) {
			token, err := s.identity(t.Context())
			return token, err == nil
		})
	case providers.CredentialsWorkloadIdentity:
		return fake.WithCredential(s.identity)
	default:
		return fake.WithCredential(func(context.Context) (string, error) { return "", nil })
	}
}

func (s *source) identity(context.Context) (string, error) {
	if token := s.token.Load(); token != nil {
		return *token, nil
	}
	return "", errNoToken
}

// rotate puts another credential there.
func (s *source) rotate(t *testing.T) string {
	token := secret + "-" + strconv.Itoa(int(s.turn.Add(1)))
	s.token.Store(&token)
	if s.path != "" {
		require.NoError(t, os.WriteFile(s.path, []byte("token: "+token+"\n"), 0o600))
	}
	return token
}

func (s *source) mount(t *testing.T, p providers.Provider, c providertest.Credential) {
	switch c {
	case providertest.CredentialMissing:
		s.token.Store(nil)
		if s.path != "" {
			require.NoError(t, os.Remove(s.path))
		}
	case providertest.CredentialUnreadable:
		require.NoError(t, os.WriteFile(s.path, []byte(secret), 0o600))
	case providertest.CredentialRotated:
		faultsOf(t, p).Accept(s.rotate(t))
	}
}

// squat plants an instance that Create did not make. The fake knows an instance as its
// own by UID and installation; one without both is not managed.
func squat(t *testing.T, p providers.Provider, req providers.CreateRequest, missing string) {
	i := providers.Instance{
		ID: idOf(faultsOf(t, p), req.Name), State: providers.StateStopped, UID: req.UID, Installation: req.Installation,
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

// orphan plants a volume whose create ended long ago.
func orphan(t *testing.T, p providers.Provider, req providers.CreateRequest) {
	f := faultsOf(t, p)
	f.PlantVolume(providers.Leftover{
		ID: idOf(f, req.Name), Kind: "volume", UID: req.UID, Installation: req.Installation, Owner: req.Owner,
		CreatedAt: time.Now().Add(-time.Hour),
	})
}

// idOf returns an ID that something with that name may have.
func idOf(f *fake.Faults, name string) string {
	if f.Profile().PrimaryKey == providers.KeyAllocated {
		return "mem/9-" + name
	}
	return fake.ID(name)
}

func delivered(t *testing.T, p providers.Provider, id string) []byte {
	found, err := p.Get(t.Context(), id)
	require.NoError(t, err)
	asked := faultsOf(t, p).Requests()
	at := slices.IndexFunc(asked, func(r providers.CreateRequest) bool { return r.UID == found.UID })
	require.GreaterOrEqual(t, at, 0)
	return asked[at].CloudInit
}

func showContexts(t *testing.T, p providers.Provider, see func(context.Context)) {
	for _, op := range []string{providers.OpCreate, providers.OpGet, providers.OpDelete, providers.OpList} {
		faultsOf(t, p).Before(op, func(ctx context.Context) error { see(ctx); return nil })
	}
}

func TestTheFakeMeetsTheContract(t *testing.T) {
	t.Parallel()
	for name, opts := range map[string][]fake.Option{
		"when all is immediate":     {},
		"when deletes return early": {fake.WithSlowDelete(), fake.WithPace(pace)},
		"when instances provision":  {fake.WithProvisioning(), fake.WithPace(pace)},
		"when nothing is immediate": {fake.WithProvisioning(), fake.WithSlowDelete(), fake.WithPace(pace)},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			require.NotEmpty(t, suite(bare, opts...).Run(t))
		})
	}
}

func bare(f *fake.Faults) providers.Provider { return f }

func TestTheFakeMeetsTheContractUnderItsDecorators(t *testing.T) {
	t.Parallel()
	suite(func(f *fake.Faults) providers.Provider {
		metrics := decorators.NewMetrics(prometheus.NewRegistry())
		return decorators.Stack(f, "lab", noop.NewTracerProvider().Tracer("test"), metrics)
	}).Run(t)
}
