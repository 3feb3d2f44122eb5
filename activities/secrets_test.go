package activities_test

import (
	"crypto/rand"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/egressfleet/egressfleet/activities"
	v1 "github.com/egressfleet/egressfleet/api/v1"
	"github.com/egressfleet/egressfleet/providers"
)

// mount puts a secret into the directory.
func (b *bench) mount(ref v1.SecretRef, content []byte) {
	b.t.Helper()
	dir := filepath.Join(b.act.SecretsDir, ref.Name)
	require.NoError(b.t, os.MkdirAll(dir, 0o700))
	require.NoError(b.t, os.WriteFile(filepath.Join(dir, ref.Key), content, 0o600))
}

func (b *bench) environ(variables map[string]string) {
	b.act.Getenv = func(name string) string { return variables[name] }
}

func (b *bench) digest(ref v1.SecretRef) (activities.SecretDigest, error) {
	return run[activities.SecretDigest](b, b.act.DigestCloudInit, activities.DigestInput{Provider: "fake", Ref: ref})
}

// delivered creates an instance with the secret and returns what the backend got.
func (b *bench) delivered(ref v1.SecretRef) []byte {
	b.t.Helper()
	digest, err := b.digest(ref)
	require.NoError(b.t, err)
	in := wanted
	in.CloudInit.SecretRef, in.Digest = &ref, digest.SHA256
	_, err = run[activities.Created](b, b.act.CreateInstance, in)
	require.NoError(b.t, err)
	got := b.backend.Requests()
	require.Len(b.t, got[len(got)-1].CloudInit, digest.Bytes)
	return got[len(got)-1].CloudInit
}

var userData = v1.SecretRef{Name: "squid-init", Key: "user-data.yaml"}

func TestALargeBinarySecretIsDeliveredByteForByte(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	content := make([]byte, 256<<10)
	_, _ = rand.Read(content)
	copy(content, "\x1f\x8b\x00\xff\r\n") // as gzip begins, and what text handling breaks
	b.mount(userData, content)
	require.Equal(t, content, b.delivered(userData))
}

func TestASecretOfTheEnvironmentIsDelivered(t *testing.T) {
	t.Parallel()
	const content = "#cloud-config\n# ünïcode\r\n\n"
	for name, prepare := range map[string]func(*bench){
		"beside a directory without it": func(*bench) {},
		"without a directory":           func(b *bench) { b.act.SecretsDir = "" },
	} {
		b := newBench(t)
		b.environ(map[string]string{"EGRESSFLEET_SECRET_SQUID_INIT_USER_DATA_YAML": content})
		prepare(b)
		require.Equal(t, content, string(b.delivered(userData)), name)
	}
}

func TestTheVariableOfASecret(t *testing.T) {
	t.Parallel()
	for ref, want := range map[v1.SecretRef]string{
		{Name: "init", Key: "user-data"}: "EGRESSFLEET_SECRET_INIT_USER_DATA",
		{Name: "a.b-c", Key: "D_e.f"}:    "EGRESSFLEET_SECRET_A_B_C_D_E_F",
	} {
		require.Equal(t, want, activities.SecretVariable(ref))
	}
}

func TestASecretInTwoPlacesIsNoSecret(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.mount(userData, []byte("s3nt1nel-file"))
	b.environ(map[string]string{activities.SecretVariable(userData): "s3nt1nel-variable"})
	_, err := b.digest(userData)
	require.Equal(t, providers.ErrPermanent, activities.ErrorClass(err))
	require.ErrorContains(t, err, "it is in secretsDir and in the variable EGRESSFLEET_SECRET_SQUID_INIT_USER_DATA_YAML")
	require.NotContains(t, err.Error(), "s3nt1nel")
	b.environ(nil)
	_, err = b.digest(userData)
	require.NoError(t, err)
}

func TestOneVariableIsNotTheContentOfTwoSecrets(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.environ(map[string]string{"EGRESSFLEET_SECRET_A_B_C": "s3nt1nel"})
	first, twin := v1.SecretRef{Name: "a-b", Key: "c"}, v1.SecretRef{Name: "a", Key: "b.c"}
	for range 2 {
		_, err := b.digest(first)
		require.NoError(t, err)
		_, err = b.digest(twin)
		require.Equal(t, providers.ErrPermanent, activities.ErrorClass(err))
		require.ErrorContains(t, err, `secretRef "a", key "b.c": the variable EGRESSFLEET_SECRET_A_B_C is that of `+
			`secretRef "a-b", key "c", too`)
		require.NotContains(t, err.Error(), "s3nt1nel")
	}
	b.mount(twin, []byte("its own"))
	_, err := b.digest(twin)
	require.Error(t, err, "which of the two is meant cannot be told")
}

func TestASecretThatIsNowhereNamesBothPlaces(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.environ(map[string]string{activities.SecretVariable(userData): ""})
	_, err := b.digest(userData)
	require.Equal(t, providers.ErrTransient, activities.ErrorClass(err), "a mount may be on its way")
	require.ErrorContains(t, err, "it is not in secretsDir")
	require.ErrorContains(t, err, "the variable EGRESSFLEET_SECRET_SQUID_INIT_USER_DATA_YAML is not set")
	b.act.SecretsDir = ""
	_, err = b.digest(userData)
	require.Equal(t, providers.ErrPermanent, activities.ErrorClass(err), "an environment does not change")
	require.ErrorContains(t, err, "no secretsDir configured, and the variable "+activities.SecretVariable(userData))
}

func TestAFileThatCannotBeReadIsNotReplacedByAVariable(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	require.NoError(t, os.MkdirAll(filepath.Join(b.act.SecretsDir, userData.Name, userData.Key), 0o700)) // a folder
	b.environ(map[string]string{activities.SecretVariable(userData): "s3nt1nel"})
	_, err := b.digest(userData)
	require.Equal(t, providers.ErrTransient, activities.ErrorClass(err))
	require.NotContains(t, err.Error(), "s3nt1nel")
}

func TestNoInstanceIsMadeFromAStandIn(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	in := wanted
	in.CloudInit = v1.CloudInit{Inline: "password: hunter2"}.Redacted()
	_, err := run[activities.Created](b, b.act.CreateInstance, in)
	require.Equal(t, providers.ErrPermanent, activities.ErrorClass(err))
	require.ErrorContains(t, err, "apply the spec again")
	require.Empty(t, b.backend.Requests())
}
