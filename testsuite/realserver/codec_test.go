package realserver

import (
	"bytes"
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.temporal.io/api/enums/v1"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/log"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/durationpb"

	httpapi "github.com/egressfleet/egressfleet/api/server"
	v1 "github.com/egressfleet/egressfleet/api/v1"
	"github.com/egressfleet/egressfleet/internal/codec"
	"github.com/egressfleet/egressfleet/providers"
	"github.com/egressfleet/egressfleet/starter/fleet"
	"github.com/egressfleet/egressfleet/testsuite/fake"
	"github.com/egressfleet/egressfleet/testsuite/output"
	"github.com/egressfleet/egressfleet/workflows/proxy"
)

const (
	inlineSentinel = "s3nt1nel-in-cloud-init"
	errorSentinel  = "s3nt1nel-in-an-error"
)

// keyDir is a directory with a new key for each id.
type keyDir string

func newKeyDir(t *testing.T, ids ...string) keyDir {
	dir := keyDir(t.TempDir())
	for _, id := range ids {
		dir.add(t, id)
	}
	return dir
}

func (d keyDir) add(t *testing.T, id string) {
	t.Helper()
	raw := make([]byte, 32)
	_, _ = rand.Read(raw)
	text := base64.StdEncoding.EncodeToString(raw) + "\n"
	require.NoError(t, os.WriteFile(filepath.Join(string(d), id), []byte(text), 0o600))
}

// only is a directory with some of the keys.
func (d keyDir) only(t *testing.T, ids ...string) keyDir {
	t.Helper()
	part := keyDir(t.TempDir())
	for _, id := range ids {
		raw, err := os.ReadFile(filepath.Join(string(d), id))
		require.NoError(t, err)
		require.NoError(t, os.WriteFile(filepath.Join(string(part), id), raw, 0o600))
	}
	return part
}

// newSealedLab is a lab with keys, in a namespace of its own: who lists without the keys
// is refused.
func newSealedLab(t *testing.T, keys keyDir) *lab {
	t.Helper()
	l := newLab(t, quick())
	l.space = "t-" + strings.ToLower(rand.Text()[:8])
	_, err := l.temporal.WorkflowService().RegisterNamespace(t.Context(), &workflowservice.RegisterNamespaceRequest{
		Namespace: l.space, WorkflowExecutionRetentionPeriod: durationpb.New(24 * time.Hour),
	})
	require.NoError(t, err)
	require.Eventually(t, func() bool { return l.EnsureSearchAttributes(t.Context(), l.space) == nil }, soon, tick)
	l.use(keys)
	require.Eventually(t, func() bool {
		_, err := l.List(t.Context(), "") // a new namespace is not everywhere at once
		return err == nil
	}, soon, tick)
	return l
}

func (l *lab) use(keys keyDir) { l.connect(codec.Options{Dir: string(keys)}) }

// stored is everything that the server holds of the proxy, as bytes and as a reader of
// an exported history sees it.
func (l *lab) stored() string {
	l.t.Helper()
	d := l.describe()
	page, err := l.temporal.ListWorkflow(l.t.Context(), &workflowservice.ListWorkflowExecutionsRequest{})
	require.NoError(l.t, err)
	var all bytes.Buffer
	for _, m := range []proto.Message{d, page, l.history(d.WorkflowExecutionInfo.FirstRunId), l.history("")} {
		raw, err := proto.Marshal(m) // payloads as they are
		require.NoError(l.t, err)
		text, err := protojson.Marshal(m) // payloads in base64
		require.NoError(l.t, err)
		all.Write(raw)
		all.Write(text)
	}
	return all.String()
}

// wounded brings a proxy with a secret to Blocked with the text of its provider, and
// from there to Running.
func (l *lab) wounded() {
	l.t.Helper()
	l.backend.Before(providers.OpCreate, fake.FailingWith(providers.ErrPermanent, errorSentinel))
	secret := spec
	secret.CloudInit.Inline = "#cloud-config\n# " + inlineSentinel
	l.apply("apply", secret)
	require.Eventually(l.t, func() bool { return l.get().Status.Phase == v1.PhaseBlocked }, soon, tick)
	c, _ := l.get().Status.Condition(v1.ConditionProvisioned)
	require.Contains(l.t, c.Message, errorSentinel, "who has the keys reads why")
	require.Contains(l.t, l.timeline(), errorSentinel)
	l.backend.Heal()
	l.told("retry", proxy.UpdateRetry)
	l.running()
	requests := l.backend.Requests()
	require.Contains(l.t, string(requests[len(requests)-1].CloudInit), inlineSentinel, "it was delivered")
}

func (l *lab) timeline() string {
	events, err := l.Timeline(l.t.Context(), "default", l.name)
	require.NoError(l.t, err)
	var b strings.Builder
	for _, ev := range events {
		b.WriteString(ev.Detail + "\n")
	}
	return b.String()
}

func TestWithKeysTheServerHoldsNoPlainText(t *testing.T) {
	keys := newKeyDir(t, "a")
	l := newSealedLab(t, keys)
	var out output.Log
	l.log = log.NewStructuredLogger(slog.New(slog.NewTextHandler(&out, &slog.HandlerOptions{Level: slog.LevelDebug})))
	l.use(keys)
	l.work()
	l.wounded()

	stored := l.stored()
	for _, hidden := range []string{inlineSentinel, errorSentinel, "#cloud-config", `"spec"`, "10.0.0."} {
		require.NotContains(t, stored, hidden)
	}
	require.Contains(t, stored, "binary/encrypted")
	require.NotContains(t, out.String(), inlineSentinel)
	require.NotEmpty(t, out.String())

	attributes := l.describe().WorkflowExecutionInfo.SearchAttributes.IndexedFields
	require.Equal(t, `"Running"`, string(attributes["ProxyPhase"].Data), "what is searched for is never encrypted")
	l.shown(true)
	l.deleted()
}

// shown expects list, get and discovery to have the proxy, or none of them.
func (l *lab) shown(want bool) {
	l.t.Helper()
	api := httptest.NewServer(httpapi.New(l.Client, httpapi.Options{}).Handler())
	defer api.Close()
	resp, err := http.Get(api.URL + "/v1/namespaces/default/proxies/" + l.name)
	require.NoError(l.t, err)
	require.NoError(l.t, resp.Body.Close())
	require.Equal(l.t, want, resp.StatusCode == http.StatusOK)
	if !want {
		_, err := l.List(l.t.Context(), "")
		require.ErrorContains(l.t, err, "encrypted with key")
		return
	}
	require.Eventually(l.t, func() bool {
		list, err := l.List(l.t.Context(), "")
		if err != nil || len(list) != 1 {
			return false
		}
		_, usable := v1.EndpointOf(list[0]) // what discovery hands out
		return usable && list[0].Metadata.Name == l.name
	}, soon, tick)
}

// The scan finds what it looks for where nothing is encrypted.
func TestWithoutKeysTheServerHoldsPlainText(t *testing.T) {
	l := newLab(t, quick())
	l.work()
	l.wounded()
	stored := l.stored()
	for _, there := range []string{inlineSentinel, errorSentinel, "#cloud-config", `"spec"`} {
		require.Contains(t, stored, there)
	}
	require.NotContains(t, stored, "binary/encrypted")
	l.deleted()
}

func TestOfAReferencedSecretTheServerHoldsTheDigest(t *testing.T) {
	const content = "#cloud-config\n# s3nt1nel-by-reference"
	l := newLab(t, quick())
	l.getenv = func(name string) string { return map[string]string{"EGRESSFLEET_SECRET_INIT_USER_DATA": content}[name] }
	l.work()
	secret := spec
	secret.CloudInit.SecretRef = &v1.SecretRef{Name: "init", Key: "user-data"}
	l.apply("apply", secret)
	l.running()
	require.Equal(t, content, string(l.backend.Requests()[0].CloudInit))
	stored := l.stored()
	require.NotContains(t, stored, "s3nt1nel-by-reference")
	require.Contains(t, stored, v1.Digest([]byte(content)))
	l.deleted()
}

func TestTheCommandLineReadsThroughTheCodecEndpoint(t *testing.T) {
	const token = "a-token-of-this-test"
	l := newSealedLab(t, newKeyDir(t, "a"))
	l.work()
	l.wounded()
	sum := sha256.Sum256([]byte(token))
	tokens := filepath.Join(t.TempDir(), "tokens")
	require.NoError(t, os.WriteFile(tokens, []byte(hex.EncodeToString(sum[:])+"\n"), 0o600))
	endpoint, err := l.keys.Endpoint(codec.EndpointOptions{TokensFile: tokens})
	require.NoError(t, err)
	api := httptest.NewServer(httpapi.New(l.Client, httpapi.Options{Codec: endpoint}).Handler())
	defer api.Close()

	show := func(args ...string) (string, error) {
		args = append([]string{
			"workflow", "show", "--workflow-id", l.id(), "--namespace", l.space, "--address", server.Address, "--output", "json",
		}, args...)
		out, err := exec.CommandContext(t.Context(), server.CLI, args...).CombinedOutput()
		return string(out), err
	}
	out, err := show()
	require.NoError(t, err, out)
	require.NotContains(t, inside(t, out), inlineSentinel)
	out, err = show("--codec-endpoint", api.URL+"/codec", "--codec-auth", "Bearer "+token)
	require.NoError(t, err, out)
	require.Contains(t, inside(t, out), inlineSentinel)
	require.Contains(t, inside(t, out), errorSentinel)
	// The command tries again until its time is over, and shows nothing.
	out, err = show("--codec-endpoint", api.URL+"/codec", "--codec-auth", "Bearer nonsense", "--command-timeout", "1s")
	require.Error(t, err)
	require.NotContains(t, out, "eventId")
	resp, err := http.Post(api.URL+"/codec/decode", "application/json", strings.NewReader(`{"payloads": []}`))
	require.NoError(t, err)
	require.NoError(t, resp.Body.Close())
	require.Equal(t, http.StatusUnauthorized, resp.StatusCode)
	l.deleted()
}

// inside is an exported history with its payloads out of base64.
func inside(t *testing.T, exported string) string {
	t.Helper()
	h, err := client.HistoryFromJSON(strings.NewReader(exported), client.HistoryJSONOptions{})
	require.NoError(t, err)
	raw, err := proto.Marshal(h)
	require.NoError(t, err)
	return string(raw)
}

func TestARotationLeavesWhatWasWrittenReadable(t *testing.T) {
	keys := newKeyDir(t, "2026-01")
	l := newSealedLab(t, keys)
	stop := l.work()
	l.wounded()
	stop()
	keys.add(t, "2026-02")
	l.use(keys)
	l.work()
	labelled := l.get()
	labelled.Metadata.Labels = map[string]string{"team": "a"}
	_, _, err := l.Apply(t.Context(), labelled, fleet.Request{ID: "label"})
	require.NoError(t, err)
	require.Equal(t, map[string]string{"team": "a"}, l.get().Metadata.Labels)
	stored := l.stored()
	require.Contains(t, stored, "2026-01")
	require.Contains(t, stored, "2026-02")
	require.Len(t, l.backend.Instances(), 1)
	l.shown(true)
	l.deleted() // and replays with both keys
}

func TestAfterTurningItOnWhatIsPlainStaysReadable(t *testing.T) {
	l := newSealedLab(t, "")
	stop := l.work()
	l.wounded()
	stop()
	l.use(newKeyDir(t, "a"))
	l.work()
	l.shown(true)
	_, err := l.Retry(t.Context(), "default", l.name, "test", fleet.Request{})
	require.NoError(t, err)
	require.Contains(t, l.stored(), "binary/encrypted")
	l.deleted()
}

func TestAMissingKeyBlocksAndFailsNothing(t *testing.T) {
	for name, without := range map[string]func(*testing.T, keyDir) keyDir{
		"another key": func(t *testing.T, all keyDir) keyDir { return all.only(t, "b") },
		"no keys":     func(*testing.T, keyDir) keyDir { return "" },
	} {
		t.Run(name, func(t *testing.T) {
			all := newKeyDir(t, "a", "b")
			l := newSealedLab(t, all.only(t, "a"))
			stop := l.work()
			l.wounded()
			stop()

			l.use(without(t, all))
			stop = l.work()
			l.signal(proxy.SignalHint, proxy.Hint{Reason: "look"})
			require.Eventually(t, func() bool { return l.describe().GetPendingWorkflowTask().GetAttempt() > 1 }, soon, tick)
			require.Contains(t, l.taskFailure(), `encrypted with key "a", which this process does not have`)
			require.Equal(t, enums.WORKFLOW_EXECUTION_STATUS_RUNNING, l.describe().WorkflowExecutionInfo.Status)
			_, err := l.Get(t.Context(), "default", l.name)
			require.ErrorContains(t, err, `key "a"`)
			l.shown(false)
			stop()

			l.use(all)
			l.work()
			l.shown(true)
			require.Len(t, l.backend.Instances(), 1)
			l.deleted()
		})
	}
}

// docs/runbooks/encryption.md says what to do before an old key is taken away.
func TestAnOldKeyCanBeTakenAway(t *testing.T) {
	keys := newKeyDir(t, "2026-01")
	l := newSealedLab(t, keys)
	stop := l.work()
	l.wounded()
	stop()
	keys.add(t, "2026-02")
	l.use(keys)
	stop = l.work()
	old := l.runID()
	l.signal(proxy.SignalHint, proxy.Hint{Renew: true})
	require.Eventually(t, func() bool { return l.runID() != old }, soon, tick)
	require.Equal(t, "2026-01", l.memoKey(), "a new run takes the memo over as it is")
	l.told("hold", proxy.UpdateHold)
	l.told("resume", proxy.UpdateResume)
	l.running()
	require.Equal(t, "2026-02", l.memoKey(), "and what changes is written with the new key")
	stop()

	l.use(keys.only(t, "2026-02"))
	l.work()
	l.shown(true)
	_, err := l.Retry(t.Context(), "default", l.name, "test", fleet.Request{})
	require.NoError(t, err)
	_, err = l.Delete(t.Context(), "default", l.name, "test", fleet.Request{})
	require.NoError(t, err)
	require.NoError(t, l.WaitGone(t.Context(), "default", l.name))
	require.Empty(t, l.backend.Instances())
	l.use(keys) // the first run is read again by who replays it
	l.replays()
}

func (l *lab) memoKey() string {
	memo := l.describe().WorkflowExecutionInfo.Memo.Fields[proxy.MemoProxy]
	return string(memo.Metadata["encryption-key-id"])
}

// taskFailure is why a workflow task failed at last.
func (l *lab) taskFailure() (text string) {
	for _, ev := range l.history("").Events {
		if a := ev.GetWorkflowTaskFailedEventAttributes(); a != nil {
			text = l.keys.FailureConverter().FailureToError(a.Failure).Error()
		}
	}
	return text
}

// A client may be given a new key before the workers are.
func TestASignalUnderAKeyThatIsNotThereYetIsNotLost(t *testing.T) {
	all := newKeyDir(t, "a", "b")
	l := newSealedLab(t, all.only(t, "a"))
	stop := l.work()
	l.wounded()
	early := newClient(t, l, all)
	require.NoError(t, early.SignalWorkflow(t.Context(), l.id(), "", proxy.SignalDelete, proxy.Why{Reason: "early"}))
	require.Eventually(t, func() bool { return l.describe().GetPendingWorkflowTask().GetAttempt() > 1 }, soon, tick)
	require.Contains(t, l.taskFailure(), `key "b"`)
	stop()
	l.use(all)
	l.work()
	l.closed()
}

func newClient(t *testing.T, l *lab, keys keyDir) client.Client {
	t.Helper()
	ring, err := codec.Open(codec.Options{Dir: string(keys)})
	require.NoError(t, err)
	options := client.Options{Namespace: l.space, Logger: l.log}
	ring.Secure(&options)
	c, err := client.NewClientFromExistingWithContext(context.WithoutCancel(t.Context()), l.temporal, options)
	require.NoError(t, err)
	return c
}
