package realserver

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"go.temporal.io/api/history/v1"
	"go.temporal.io/sdk/converter"
	"google.golang.org/protobuf/encoding/protojson"

	"github.com/egressfleet/egressfleet/testsuite/devserver"
)

// recorded names the tests whose histories are kept, and what their files begin with;
// the version of the workflow and the number of the run follow.
var recorded = map[string]string{
	"TestALifeFromCreateToDelete":                          "create-run-delete",
	"TestAnotherSpecReplacesTheInstance":                   "replace-on-spec-change",
	"TestALatchIsReleasedByRetry":                          "latch-and-release",
	"TestQuotaRecoversUnaided":                             "quota",
	"TestALostInstanceIsMadeAgain":                         "lost-instance",
	"TestANewRunKeepsTheUIDAndCostsFewEvents":              "continue-as-new",
	"TestAnOutageWritesNoHistoryWhileItLasts":              "outage",
	"TestDeleteDuringACreateThatNeverAnswersLeavesNothing": "delete-during-create",
	"TestADeadlineEndsTheWatch":                            "deadline",
	"TestAHoldEndsByItselfAndSkippedCleanupIsTold":         "hold-and-leave",
	"TestAWaveOfReportsTakesDownNoMoreThanTheFloorAllows":  "wave",
	"TestTheFirstActOfAnAdoptedProxyIsALook":               "adopted",
}

// keep writes a history to the folder that testsuite/replay reads, if asked to. What
// is there stays: it stands for workflows that run somewhere.
func (l *lab) keep(run int, h *history.History) { l.keepIn("proxy", run, h) }

// keepIn is keep for the workflow of a folder.
func (l *lab) keepIn(folder string, run int, h *history.History) {
	name, wanted := recorded[l.t.Name()]
	if !*record || !wanted {
		return
	}
	root, err := devserver.Root()
	require.NoError(l.t, err)
	raw, err := protojson.MarshalOptions{Indent: " "}.Marshal(h)
	require.NoError(l.t, err)
	// The worker's identity and its own task queue name the host: nobody's business.
	host, err := os.Hostname()
	require.NoError(l.t, err)
	text := strings.NewReplacer(
		fmt.Sprintf("%d@%s@", os.Getpid(), host), "worker@host", `"`+host+":", `"host:`,
	).Replace(string(raw))
	file := filepath.Join(root, "workflows", folder, "testdata", "replay",
		fmt.Sprintf("%s.v%d.%d.json", name, versionOf(l.t, h), run))
	require.NoError(l.t, os.MkdirAll(filepath.Dir(file), 0o750))
	f, err := os.OpenFile(file, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if errors.Is(err, fs.ErrExist) {
		l.t.Logf("%s is there already and stays", filepath.Base(file))
		return
	}
	require.NoError(l.t, err)
	_, err = f.WriteString(text)
	require.NoError(l.t, errors.Join(err, f.Close()))
}

// versionOf reads the version that a run is pinned to.
func versionOf(t *testing.T, h *history.History) (version int) {
	t.Helper()
	for _, ev := range h.Events {
		if m := ev.GetMarkerRecordedEventAttributes(); m.GetMarkerName() == "Version" {
			require.NoError(t, converter.GetDefaultDataConverter().FromPayloads(m.Details["version"], &version))
			return version
		}
	}
	require.Fail(t, "the run is pinned to no version")
	return 0
}
