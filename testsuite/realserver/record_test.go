package realserver

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/stretchr/testify/require"
	"go.temporal.io/api/history/v1"
	"google.golang.org/protobuf/encoding/protojson"

	"github.com/egressfleet/egressfleet/testsuite/devserver"
)

// recorded names the tests whose histories are kept, and the files they go to.
var recorded = map[string]string{
	"TestALifeFromCreateToDelete":                          "create-run-delete",
	"TestAnotherSpecReplacesTheInstance":                   "replace-on-spec-change",
	"TestALatchIsReleasedByRetry":                          "latch-and-release",
	"TestQuotaRecoversUnaided":                             "quota",
	"TestALostInstanceIsMadeAgain":                         "lost-instance",
	"TestANewRunKeepsTheUIDAndCostsFewEvents":              "continue-as-new",
	"TestAnOutageWritesNoHistoryWhileItLasts":              "outage",
	"TestDeleteDuringACreateThatNeverAnswersLeavesNothing": "delete-during-create",
}

// keep writes a history to the folder that testsuite/replay reads, if asked to.
func (l *lab) keep(run int, h *history.History) {
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
	file := filepath.Join(root, "workflows", "proxy", "testdata", "replay", fmt.Sprintf("%s.%d.json", name, run))
	require.NoError(l.t, os.MkdirAll(filepath.Dir(file), 0o750))
	require.NoError(l.t, os.WriteFile(file, []byte(text), 0o600))
}
