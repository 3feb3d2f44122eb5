package activities_test

import (
	"context"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/temporal"
	sdktest "go.temporal.io/sdk/testsuite"

	"github.com/egressfleet/egressfleet/activities"
	v1 "github.com/egressfleet/egressfleet/api/v1"
	"github.com/egressfleet/egressfleet/providers"
	"github.com/egressfleet/egressfleet/testsuite/fake"
)

// bench runs activities against a backend that can be broken.
type bench struct {
	t       *testing.T
	backend *fake.Faults
	act     *activities.Instances
	env     *sdktest.TestActivityEnvironment
}

func newBench(t *testing.T) *bench {
	t.Helper()
	b := &bench{
		t: t, backend: fake.WithFaults(fake.New("fake")),
		env: new(sdktest.WorkflowTestSuite).NewTestActivityEnvironment(),
	}
	b.act = &activities.Instances{
		Lookup: func(name string) (providers.Provider, func(), bool) {
			return b.backend, func() {}, name == "fake"
		},
		Installation: fake.DefaultInstallation, SecretsDir: t.TempDir(),
	}
	b.env.RegisterActivity(b.act)
	return b
}

// run executes one attempt and decodes its result.
func run[T any](b *bench, activity, in any) (out T, err error) {
	v, err := b.env.ExecuteActivity(activity, in)
	if err == nil && v.HasValue() {
		require.NoError(b.t, v.Get(&out))
	}
	return out, err
}

var wanted = activities.CreateInput{Provider: "fake", UID: "u1", Attempt: 1, Owner: "default/a", Port: 3128}

func (b *bench) created() activities.InstanceRef {
	b.t.Helper()
	made, err := run[activities.Created](b, b.act.CreateInstance, wanted)
	require.NoError(b.t, err)
	return activities.InstanceRef{Provider: "fake", ID: made.ID}
}

func TestAnInstanceIsCreatedFoundReadAndDeleted(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	ref := b.created()
	require.Equal(t, ref, b.created(), "creating again is the same instance")
	got, err := run[activities.Answer](b, b.act.GetInstance, ref)
	require.NoError(t, err)
	require.Equal(t, "u1", got.Instance.UID)
	found, err := run[activities.Answer](b, b.act.FindInstance, activities.OwnRef{Provider: "fake", UID: "u1"})
	require.NoError(t, err)
	require.Equal(t, ref.ID, found.Instance.ID)
	other, err := run[activities.Answer](b, b.act.FindInstance, activities.OwnRef{Provider: "fake", UID: "u2"})
	require.NoError(t, err)
	require.Equal(t, activities.Answer{Gone: true}, other)
	_, err = run[any](b, b.act.DeleteInstance, ref)
	require.NoError(t, err)
	gone, err := run[activities.Answer](b, b.act.GetInstance, ref)
	require.NoError(t, err, "gone is an answer")
	require.Equal(t, activities.Answer{Gone: true}, gone)
}

func TestALateFailureIsAnAnswer(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.backend.FailCreate(providers.ErrQuotaExceeded, "stockout")
	got, err := run[activities.Answer](b, b.act.GetInstance, b.created())
	require.NoError(t, err)
	require.Equal(t, providers.ErrQuotaExceeded, got.CreateFailed.Class)
	require.Contains(t, got.CreateFailed.Text, "stockout")
}

func TestAProviderThatNobodyConfiguredIsNamed(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	_, err := run[activities.Answer](b, b.act.GetInstance, activities.InstanceRef{Provider: "later", ID: "x"})
	f := activities.FaultOf(err)
	require.Equal(t, providers.ErrPermanent, f.Class)
	require.Equal(t, v1.ReasonProviderNotConfigured, f.Reason)
	require.Contains(t, f.Text, "later")
}

func TestAFailingListFindsNothingAndSaysSo(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.created()
	b.backend.Before(providers.OpList, fake.Failing(providers.ErrTransient))
	_, err := run[activities.Answer](b, b.act.FindInstance, activities.OwnRef{Provider: "fake", UID: "u1"})
	require.Equal(t, providers.ErrTransient, activities.ErrorClass(err), "never that it is gone")
}

func TestASecretIsReadByTheActivityOnly(t *testing.T) {
	t.Parallel()
	const content = "s3nt1nel\x00\xff"
	b := newBench(t)
	ref := v1.SecretRef{Name: "init", Key: "user-data"}
	require.NoError(t, os.Mkdir(filepath.Join(b.act.SecretsDir, ref.Name), 0o700))
	require.NoError(t, os.WriteFile(filepath.Join(b.act.SecretsDir, ref.Name, ref.Key), []byte(content), 0o600))
	asked := activities.DigestInput{Provider: "fake", Ref: ref}
	digest, err := run[activities.SecretDigest](b, b.act.DigestCloudInit, asked)
	require.NoError(t, err)
	require.Equal(t, activities.SecretDigest{Ref: ref, SHA256: v1.Digest([]byte(content)), Bytes: len(content)}, digest)

	in := wanted
	in.CloudInit.SecretRef, in.Digest = &ref, digest.SHA256
	_, err = run[activities.Created](b, b.act.CreateInstance, in)
	require.NoError(t, err)
	require.Equal(t, content, string(b.backend.Requests()[0].CloudInit), "byte for byte")

	in.Digest = v1.Digest([]byte("as it was"))
	_, err = run[activities.Created](b, b.act.CreateInstance, in)
	require.Equal(t, providers.ErrTransient, activities.ErrorClass(err))
	require.NotContains(t, err.Error(), "s3nt1nel")
}

func TestASecretThatCannotBeReadIsNamed(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	outside := filepath.Join(t.TempDir(), "outside")
	require.NoError(t, os.WriteFile(outside, []byte("not for you"), 0o600))
	require.NoError(t, os.Mkdir(filepath.Join(b.act.SecretsDir, "init"), 0o700))
	require.NoError(t, os.Symlink(outside, filepath.Join(b.act.SecretsDir, "init", "link")))
	big := make([]byte, 1<<20+1)
	require.NoError(t, os.WriteFile(filepath.Join(b.act.SecretsDir, "init", "big"), big, 0o600))
	for name, tc := range map[string]struct {
		key   string
		class providers.Class
	}{
		"it is not there": {"missing", providers.ErrTransient}, "it leads outside": {"link", providers.ErrTransient},
		"it is too large": {"big", providers.ErrPermanent},
	} {
		_, err := run[any](b, b.act.DigestCloudInit, activities.DigestInput{
			Provider: "fake", Ref: v1.SecretRef{Name: "init", Key: tc.key},
		})
		require.Equal(t, tc.class, activities.ErrorClass(err), name)
		require.ErrorContains(t, err, tc.key)
		require.NotContains(t, err.Error(), b.act.SecretsDir)
		require.NotContains(t, err.Error(), "not for you")
	}
	b.act.SecretsDir = ""
	_, err := run[any](b, b.act.DigestCloudInit, activities.DigestInput{
		Provider: "fake", Ref: v1.SecretRef{Name: "a", Key: "b"},
	})
	require.Equal(t, providers.ErrPermanent, activities.ErrorClass(err))
}

const poll = 7 * time.Minute

// look runs one attempt of AwaitChange.
func (b *bench) look(
	ref activities.InstanceRef, known activities.Known, lease time.Duration,
) (activities.Answer, error) {
	return run[activities.Answer](b, b.act.AwaitChange, activities.WatchInput{
		Ref: ref, Known: known, Poll: poll, MaxPoll: poll, Lease: lease,
	})
}

func TestAwaitChangeComesBackLaterWhenNothingChanged(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	ref := b.created()
	running := activities.KnownOf(&b.backend.Instances()[0])
	for name, tc := range map[string]struct {
		known  activities.Known
		broken fake.Hook
	}{
		"it still runs": {running, nil},
		"it still fails in the one way": {
			activities.Known{Failure: providers.ErrQuotaExceeded}, fake.Failing(providers.ErrQuotaExceeded),
		},
	} {
		b.backend.Before(providers.OpGet, tc.broken)
		_, err := b.look(ref, tc.known, time.Hour)
		var app *temporal.ApplicationError
		require.ErrorAs(t, err, &app, name)
		require.Equal(t, "Unchanged", app.Type(), name)
		require.Equal(t, poll, app.NextRetryDelay(), name)
		require.Equal(t, temporal.ApplicationErrorCategoryBenign, app.Category(), name)
		require.False(t, app.NonRetryable(), name)
	}
}

func TestAwaitChangeReportsWhatIsNew(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	ref := b.created()
	running := activities.KnownOf(&b.backend.Instances()[0])
	broken := running
	broken.Failure = providers.ErrTransient
	for name, tc := range map[string]struct {
		known activities.Known
		lease time.Duration
	}{
		"nothing was known": {activities.Known{}, time.Hour},
		"another state":     {activities.Known{State: providers.StateProvisioning}, time.Hour},
		"an outage is over": {broken, time.Hour},
		"the lease is over": {running, 0},
	} {
		out, err := b.look(ref, tc.known, tc.lease)
		require.NoError(t, err, name)
		require.Equal(t, providers.StateRunning, out.Instance.State, name)
	}
	b.backend.Before(providers.OpGet, fake.Failing(providers.ErrNotFound))
	out, err := b.look(ref, running, time.Hour)
	require.NoError(t, err)
	require.True(t, out.Gone)
	for name, known := range map[string]activities.Known{"it ran": running, "it failed in another way": broken} {
		b.backend.Before(providers.OpGet, fake.Failing(providers.ErrPermanent))
		_, err := b.look(ref, known, time.Hour)
		require.Equal(t, providers.ErrPermanent, activities.ErrorClass(err), name)
		require.ErrorContains(t, err, "injected", name)
	}
}

func TestAwaitChangeOutlastsABlip(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	ref := b.created()
	running := activities.KnownOf(&b.backend.Instances()[0])
	b.backend.Before(providers.OpGet, fake.Once(providers.ErrTransient))
	_, err := run[activities.Answer](b, b.act.AwaitChange, activities.WatchInput{
		Ref: ref, Known: running, Poll: poll, MaxPoll: poll, Lease: time.Hour, Outlast: time.Minute,
	})
	require.ErrorContains(t, err, "unchanged", "the second look saw that it runs")
	require.Equal(t, 2, b.backend.Calls(providers.OpGet))
}

func TestAFreshWatchLooksAfterAPoll(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	_, err := run[activities.Answer](b, b.act.AwaitChange, activities.WatchInput{
		Ref: b.created(), Poll: poll, MaxPoll: poll, Lease: time.Hour, Fresh: true,
	})
	require.ErrorContains(t, err, "unchanged")
	require.Zero(t, b.backend.Calls(providers.OpGet))
}

func TestAPanickingProviderIsATransientError(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.backend.Before(providers.OpGet, func(context.Context) error { panic("nil map") })
	_, err := run[activities.Answer](b, b.act.GetInstance, activities.InstanceRef{Provider: "fake", ID: "mem/a"})
	require.Equal(t, providers.ErrTransient, activities.ErrorClass(err))
	require.ErrorContains(t, err, "panicked: nil map")
}

// partial leaves something out of its listing.
type partial struct{ *fake.Faults }

func (p partial) Inventory(context.Context) (providers.Inventory, error) {
	return providers.Inventory{Omitted: []string{"zone b"}}, nil
}

func TestWhatCouldNotBeListedIsNotGone(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.act.Lookup = func(string) (providers.Provider, func(), bool) { return partial{b.backend}, func() {}, true }
	_, err := run[activities.Answer](b, b.act.FindInstance, activities.OwnRef{Provider: "fake", UID: "u1"})
	require.Equal(t, providers.ErrTransient, activities.ErrorClass(err))
	require.ErrorContains(t, err, "zone b")
}

// A provider that is told to stop can still say why it could not go on; a bare timeout
// of its attempt could not.
func TestEveryCallHasADeadlineWithinItsAttempt(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	within := map[string]bool{}
	for _, op := range []string{providers.OpCreate, providers.OpGet, providers.OpList, providers.OpDelete} {
		b.backend.Before(op, func(ctx context.Context) error {
			deadline, ok := ctx.Deadline()
			within[op] = ok && deadline.Before(activity.GetInfo(ctx).Deadline)
			return nil
		})
	}
	ref := b.created()
	_, err := run[activities.Answer](b, b.act.GetInstance, ref)
	require.NoError(t, err)
	_, err = run[activities.Answer](b, b.act.FindInstance, activities.OwnRef{Provider: "fake", UID: "u1"})
	require.NoError(t, err)
	_, err = run[any](b, b.act.DeleteInstance, ref)
	require.NoError(t, err)
	require.Equal(t, map[string]bool{
		providers.OpCreate: true, providers.OpGet: true, providers.OpList: true, providers.OpDelete: true,
	}, within)
}

func TestAProviderIsReleasedOnceItsCallHasEnded(t *testing.T) {
	t.Parallel()
	for name, does := range map[string]fake.Hook{
		"an answer": func(context.Context) error { return nil },
		"an error":  fake.Failing(providers.ErrPermanent),
		"a panic":   func(context.Context) error { panic("nil map") },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newBench(t)
			released := 0
			b.act.Lookup = func(string) (providers.Provider, func(), bool) {
				return b.backend, func() { released++ }, true
			}
			b.backend.Before(providers.OpDelete, func(ctx context.Context) error {
				require.Zero(t, released, "the call is under way")
				return does(ctx)
			})
			_, err := run[struct{}](b, b.act.DeleteInstance, activities.InstanceRef{Provider: "fake", ID: "mem/a"})
			require.Equal(t, name == "an answer", err == nil)
			require.Equal(t, 1, released)
		})
	}
}
