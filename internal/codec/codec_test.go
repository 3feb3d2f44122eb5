package codec_test

import (
	"bytes"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.temporal.io/api/common/v1"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/converter"
	"go.temporal.io/sdk/temporal"

	"github.com/egressfleet/egressfleet/internal/codec"
)

// Two keys, as `openssl rand -base64 32` writes them.
const (
	keyA = "qM3Cq1o5N0mZq1W8nH2nYyF0c8s0o6mJ0sY3m5bq7pQ="
	keyB = "b2LwQd1uXv8s3c7yZk5nR0tPj9aE4hGfUq6iMxWlC3E="
)

const sentinel = "s3nt1nel"

// keyDir is a directory with one file for each key.
func keyDir(t *testing.T, keys map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	for id, key := range keys {
		put(t, dir, id, key)
	}
	return dir
}

func put(t *testing.T, dir, id, key string) {
	t.Helper()
	require.NoError(t, os.WriteFile(filepath.Join(dir, id), []byte(key+"\n"), 0o600))
}

func open(t *testing.T, o codec.Options) *codec.Ring {
	t.Helper()
	r, err := codec.Open(o)
	require.NoError(t, err)
	return r
}

func plain() *common.Payload {
	return &common.Payload{
		Metadata: map[string][]byte{"encoding": []byte("json/plain")}, Data: []byte(`"` + sentinel + `"`),
	}
}

func encode(t *testing.T, r *codec.Ring) *common.Payload {
	t.Helper()
	got, err := r.Encode([]*common.Payload{plain()})
	require.NoError(t, err)
	require.Len(t, got, 1)
	return got[0]
}

func decode(r *codec.Ring, p *common.Payload) (*common.Payload, error) {
	got, err := r.Decode([]*common.Payload{p})
	if err != nil {
		return nil, err
	}
	return got[0], nil
}

func TestWhatIsEncryptedIsReadAgainAndByNobodyElse(t *testing.T) {
	t.Parallel()
	r := open(t, codec.Options{Dir: keyDir(t, map[string]string{"2026-11": keyA})})
	p := encode(t, r)
	require.Equal(t, map[string]string{
		"encoding": "binary/encrypted", "encryption-cipher": "AES-256-GCM", "encryption-key-id": "2026-11",
	}, metadata(p))
	require.NotContains(t, string(p.Data), sentinel)
	require.NotContains(t, string(p.Data), "json/plain", "the metadata is hidden, too")
	require.NotEqual(t, p.Data, encode(t, r).Data, "each has a nonce of its own")
	got, err := decode(r, p)
	require.NoError(t, err)
	require.Equal(t, plain().GetData(), got.GetData())
	require.Equal(t, metadata(plain()), metadata(got))
}

func metadata(p *common.Payload) map[string]string {
	all := map[string]string{}
	for k, v := range p.GetMetadata() {
		all[k] = string(v)
	}
	return all
}

func TestWhatWasWrittenBeforeStillDecodes(t *testing.T) {
	t.Parallel()
	for name, r := range map[string]*codec.Ring{
		"a ring":           open(t, codec.Options{Dir: keyDir(t, map[string]string{"a": keyA})}),
		"a ring of no key": open(t, codec.Options{}),
	} {
		got, err := decode(r, plain())
		require.NoError(t, err, name)
		require.Equal(t, plain().GetData(), got.GetData(), name)
	}
}

func TestWithoutADirectoryNothingChanges(t *testing.T) {
	t.Parallel()
	r := open(t, codec.Options{})
	require.False(t, r.HasKeys())
	require.Equal(t, plain().GetData(), encode(t, r).GetData())
	failure := r.FailureConverter().ErrorToFailure(temporal.NewApplicationError("text", "Class"))
	require.Equal(t, "text", failure.GetMessage())
	_, err := r.DataConverter().ToPayload("x")
	require.NoError(t, err)
}

func TestEveryKeyDecryptsAndTheCurrentOneEncrypts(t *testing.T) {
	t.Parallel()
	dir := keyDir(t, map[string]string{"a": keyA})
	old := encode(t, open(t, codec.Options{Dir: dir}))
	put(t, dir, "b", keyB)
	for name, o := range map[string]codec.Options{
		"b": {Dir: dir}, // the last name
		"a": {Dir: dir, Current: "a"},
	} {
		both := open(t, o)
		require.Equal(t, name, both.Current())
		require.Equal(t, name, metadata(encode(t, both))["encryption-key-id"])
		_, err := decode(both, old)
		require.NoError(t, err)
	}
}

func TestAMissingKeyIsNamedAndFailsNoWorkflow(t *testing.T) {
	t.Parallel()
	p := encode(t, open(t, codec.Options{Dir: keyDir(t, map[string]string{"lost": keyA})}))
	for name, r := range map[string]*codec.Ring{
		"another key": open(t, codec.Options{Dir: keyDir(t, map[string]string{"b": keyB})}),
		"no key":      open(t, codec.Options{}),
	} {
		_, err := decode(r, p)
		var missing *codec.UnknownKeyError
		require.ErrorAs(t, err, &missing, name)
		require.Equal(t, "lost", missing.ID)
		require.ErrorContains(t, err, `key "lost", which this process does not have`)
		require.ErrorContains(t, err, "EGRESSFLEET_CODEC_KEYS")
		var blocks *converter.WorkflowTaskFailureError
		require.ErrorAs(t, err, &blocks)
		require.True(t, codec.IsUnreadable(r.DataConverter().FromPayload(p, new(string))))
	}
}

func TestWhatWasAlteredIsRefused(t *testing.T) {
	t.Parallel()
	r := open(t, codec.Options{Dir: keyDir(t, map[string]string{"a": keyA, "same": keyA, "z": keyB}), Current: "a"})
	for name, alter := range map[string]func(*common.Payload){
		"a bit of the text":       func(p *common.Payload) { p.Data[len(p.Data)/2] ^= 1 },
		"a bit of the nonce":      func(p *common.Payload) { p.Data[0] ^= 1 },
		"cut off":                 func(p *common.Payload) { p.Data = p.Data[:len(p.Data)-1] },
		"nothing but a beginning": func(p *common.Payload) { p.Data = p.Data[:5] },
		"empty":                   func(p *common.Payload) { p.Data = nil },
		"the id of another key":   func(p *common.Payload) { p.Metadata["encryption-key-id"] = []byte("z") },
		// The bytes of the key are the same: only the bound metadata tells.
		"the id of a twin": func(p *common.Payload) { p.Metadata["encryption-key-id"] = []byte("same") },
		"another cipher":   func(p *common.Payload) { p.Metadata["encryption-cipher"] = []byte("none") },
	} {
		p := encode(t, r)
		alter(p)
		_, err := decode(r, p)
		require.Error(t, err, name)
		require.ErrorContains(t, err, string(p.Metadata["encryption-key-id"]), name)
		require.True(t, codec.IsUnreadable(err), name)
		require.NotContains(t, err.Error(), sentinel)
	}
}

func TestAKeyFileThatIsWrongIsNamedWithoutTheKey(t *testing.T) {
	t.Parallel()
	const short = "c2VudGluZWwtc2hvcnQ="
	for name, tt := range map[string]struct {
		file, text string
		mode       os.FileMode
		want       string
	}{
		"too short":            {"k", short, 0o600, "does not hold 32 bytes in standard base64"},
		"too long":             {"k", keyA + keyA, 0o600, "does not hold 32 bytes"},
		"hexadecimal":          {"k", strings.Repeat("ab", 32), 0o600, "does not hold 32 bytes"},
		"32 raw bytes":         {"k", strings.Repeat("k", 32), 0o600, "does not hold 32 bytes"},
		"a line in the middle": {"k", keyA[:20] + "\n" + keyA[20:], 0o600, "does not hold 32 bytes"},
		"URL base64":           {"k", strings.Replace(keyA, "q", "_", 1), 0o600, "does not hold 32 bytes"},
		"empty":                {"k", "", 0o600, "does not hold 32 bytes"},
		"readable by all":      {"k", keyA, 0o644, "mode 0644 lets everybody at it; chmod 0600"},
		"writable by all":      {"k", keyA, 0o602, "mode 0602 lets everybody at it"},
		"a name with a blank":  {"my key", keyA, 0o600, "its name is no key id"},
	} {
		dir := t.TempDir()
		file := filepath.Join(dir, tt.file)
		require.NoError(t, os.WriteFile(file, []byte(tt.text), 0o600))
		require.NoError(t, os.Chmod(file, tt.mode)) // whatever the umask is
		_, err := codec.Open(codec.Options{Dir: dir})
		require.ErrorContains(t, err, "key file "+file+": ", name)
		require.ErrorContains(t, err, tt.want, name)
		if tt.text != "" {
			require.NotContains(t, err.Error(), tt.text[:8], name)
		}
	}
}

func TestADirectoryThatIsWrongIsNamed(t *testing.T) {
	t.Parallel()
	empty := t.TempDir()
	_, err := codec.Open(codec.Options{Dir: empty})
	require.ErrorContains(t, err, empty+" holds no key; make one")
	_, err = codec.Open(codec.Options{Dir: filepath.Join(empty, "nowhere")})
	require.ErrorContains(t, err, "nowhere")
	_, err = codec.Open(codec.Options{Dir: keyDir(t, map[string]string{"a": keyA, "b": keyB}), Current: "c"})
	require.ErrorContains(t, err, `codec.current: "c" is not a key in `)
	require.ErrorContains(t, err, "which holds a, b")
	folder := t.TempDir()
	require.NoError(t, os.Mkdir(filepath.Join(folder, "old"), 0o700))
	_, err = codec.Open(codec.Options{Dir: folder})
	require.ErrorContains(t, err, filepath.Join(folder, "old")+": is not a file")
}

// Kubernetes mounts a Secret as links into a directory that begins with two dots, and
// changes it by turning one link.
func TestAMountedSecretIsRead(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	version := filepath.Join(dir, "..2026_11_30")
	require.NoError(t, os.Mkdir(version, 0o700))
	put(t, version, "a", keyA)
	require.NoError(t, os.Symlink("..2026_11_30", filepath.Join(dir, "..data")))
	require.NoError(t, os.Symlink(filepath.Join("..data", "a"), filepath.Join(dir, "a")))
	require.Equal(t, "a", open(t, codec.Options{Dir: dir}).Current())
}

// clock is moved by hand.
type clock struct{ at time.Time }

func (c *clock) now() time.Time { return c.at }

func TestAddedKeysAreFoundWithoutARestart(t *testing.T) {
	t.Parallel()
	dir := keyDir(t, map[string]string{"a": keyA})
	var log bytes.Buffer
	c := &clock{at: time.Unix(1, 0)}
	r := open(t, codec.Options{Dir: dir, Now: c.now, Logger: slog.New(slog.NewTextHandler(&log, nil))})
	put(t, dir, "b", keyB)
	other := encode(t, open(t, codec.Options{Dir: dir}))
	_, err := decode(r, other)
	require.ErrorContains(t, err, `"b"`, "the directory was read just now")
	c.at = c.at.Add(time.Second)
	_, err = decode(r, other)
	require.NoError(t, err, "an unknown key has the directory read")

	put(t, dir, "c", keyA)
	require.Equal(t, "b", r.Current())
	c.at = c.at.Add(10 * time.Second)
	require.Equal(t, "c", r.Current(), "and time does")

	put(t, dir, "d", "broken-"+sentinel)
	for range 3 {
		c.at = c.at.Add(10 * time.Second)
		require.Equal(t, "c", r.Current(), "a fault leaves the keys as they are")
	}
	require.Equal(t, 1, strings.Count(log.String(), "cannot be read again"), "and is told once")
	require.Contains(t, log.String(), filepath.Join(dir, "d"))
	require.NotContains(t, log.String(), sentinel)
}

func TestTextsOfFailuresAreHiddenAndTheirClassIsNot(t *testing.T) {
	t.Parallel()
	r := open(t, codec.Options{Dir: keyDir(t, map[string]string{"a": keyA})})
	var options client.Options
	r.Secure(&options)
	failure := options.FailureConverter.ErrorToFailure(temporal.NewApplicationError(sentinel, "Transient", sentinel))
	raw := failure.String()
	require.NotContains(t, raw, sentinel)
	require.Equal(t, "Transient", failure.GetApplicationFailureInfo().GetType())
	var app *temporal.ApplicationError
	require.ErrorAs(t, options.FailureConverter.FailureToError(failure), &app)
	require.Equal(t, sentinel, app.Message())
	var detail string
	require.NoError(t, app.Details(&detail))
	require.Equal(t, sentinel, detail)
}
