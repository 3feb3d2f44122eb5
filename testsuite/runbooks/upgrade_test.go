//go:build tools

package runbooks_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"go.temporal.io/api/enums/v1"
	workflowpb "go.temporal.io/api/workflow/v1"
	"go.temporal.io/sdk/client"

	v1 "github.com/egressfleet/egressfleet/api/v1"
	"github.com/egressfleet/egressfleet/testsuite/devserver"
)

const (
	upgrade = "upgrade.md"
	// taskFailed is what a worker logs of a workflow task that it has failed.
	taskFailed = "Failed to process workflow task"
)

// served has the API serve the codec to the token of the page.
const served = `printf %s "$TOKEN" | sha256sum | cut -d' ' -f1 > codec-tokens
export EGRESSFLEET_CODEC_TOKENS_FILE=codec-tokens
`

// The old worker and the new one are of one build: that a new one can replay what an old
// one has done is told by testsuite/replay.
func TestTheCommandsOfUpgradeBringANewWorker(t *testing.T) {
	t.Parallel()
	s := newSession(t)
	s.installs(served)
	s.types("OLD=$! K=$PWD API=http://127.0.0.1:" + s.port("8081") + "\n" + s.block(codecKeys, "CODEC=("))
	s.makes("a", "b")
	before := s.looks()
	s.replays(slices.Collect(maps.Keys(before)))
	s.startsOneBeside()
	s.types("kill $OLD; wait $OLD") // it ends with 0
	s.staysAsItWas(before)
	s.renews(before["a"])
	s.seesThatItIsOver(before)
	s.endsWhatIsStuck()
	s.drains()
}

func (s *session) makes(names ...string) {
	s.t.Helper()
	for _, name := range names {
		s.types(fmt.Sprintf("echo '{\"metadata\": {\"namespace\": \"default\", \"name\": %q}, \"spec\": "+
			"{\"provider\": \"local\", \"port\": %s}}' > proxy.json; bin/starter apply -f proxy.json", name, s.port("3140")))
	}
}

// looks types step 1 until both run and are counted, and returns them by name.
func (s *session) looks() (proxies map[string]v1.Proxy) {
	s.t.Helper()
	require.Eventually(s.t, func() bool {
		said, is := s.tries(s.block(upgrade, "> before.json"))
		proxies = s.listed("before.json")
		return is && said == "Total: 2" && proxies["a"].Status.Phase == v1.PhaseRunning &&
			proxies["b"].Status.Phase == v1.PhaseRunning
	}, soon, tick)
	return proxies
}

func (s *session) listed(file string) map[string]v1.Proxy {
	s.t.Helper()
	text, err := os.ReadFile(s.path(file))
	require.NoError(s.t, err)
	var list struct{ Items []v1.Proxy }
	require.NoError(s.t, json.Unmarshal(text, &list), "%s", text)
	proxies := map[string]v1.Proxy{}
	for _, p := range list.Items {
		proxies[p.Metadata.Name] = p
	}
	return proxies
}

var poller = regexp.MustCompile(`(?m)^ *UNVERSIONED +(workflow|activity) +([0-9]+@\S+)`)

// startsOneBeside starts a second worker, on ports of its own, and types step 2.
func (s *session) startsOneBeside() {
	s.t.Helper()
	for _, named := range []string{"8081", "8444", "9465"} {
		delete(s.ports, named)
	}
	s.types(s.block(install, "> worker.yaml", "8081", "8444", "9465"))
	s.types("bin/worker --config worker.yaml &\nNEW=$!")
	s.ports["9464"] = s.port("9465") // install.md has two processes on one machine in mind
	require.Eventually(s.t, func() bool {
		said, is := s.tries(s.block(upgrade, "bin/worker ready"))
		_, pollers, _ := strings.Cut(said, "Pollers:")
		who := map[string]int{}
		for _, found := range poller.FindAllStringSubmatch(pollers, -1) {
			who[found[1]]++
		}
		return is && who["workflow"] == 2 && who["activity"] == 2
	}, soon, tick)
}

// staysAsItWas types step 4.
func (s *session) staysAsItWas(before map[string]v1.Proxy) {
	s.t.Helper()
	said := s.types(s.block(upgrade, "starter get -A\n"))
	for name := range before {
		require.Regexp(s.t, `(?m)^default +`+name+` +local +Running `, said)
	}
	after := s.looks()
	for name, p := range before {
		require.Equal(s.t, p.Status.ProviderID, after[name].Status.ProviderID)
	}
}

// renews types step 5: a new run has the old instance.
func (s *session) renews(p v1.Proxy) {
	s.t.Helper()
	const id = "proxy/default/a"
	old := s.workflow(id)
	s.types(s.block(upgrade, "--name hint"))
	require.Eventually(s.t, func() bool {
		run := s.workflow(id)
		return run.GetExecution().GetRunId() != old.GetExecution().GetRunId() &&
			run.GetFirstRunId() == old.GetFirstRunId() && run.GetStatus() == enums.WORKFLOW_EXECUTION_STATUS_RUNNING
	}, soon, tick)
	require.Equal(s.t, p.Status.ProviderID, s.looks()["a"].Status.ProviderID)
	require.Len(s.t, s.instances(), 2)
}

// workflow is the newest run of one.
func (s *session) workflow(id string) *workflowpb.WorkflowExecutionInfo {
	s.t.Helper()
	c, err := client.DialContext(s.t.Context(), client.Options{HostPort: s.server.Address, Logger: devserver.Quiet()})
	require.NoError(s.t, err)
	defer c.Close()
	described, err := c.DescribeWorkflow(s.t.Context(), id, "")
	require.NoError(s.t, err)
	return described.RawResponse.GetWorkflowExecutionInfo()
}

// seesThatItIsOver looks at what no task has failed of.
func (s *session) seesThatItIsOver(before map[string]v1.Proxy) {
	s.t.Helper()
	version := s.types("bin/worker version")
	said := s.types(s.block(upgrade, "egressfleet_build_info", "9464"))
	require.Regexp(s.t, `^egressfleet_build_info\{.*version="`+regexp.QuoteMeta(version)+`".*\} 1$`, said)
	require.NotContains(s.t, s.log.String(), taskFailed)
	require.Len(s.t, s.looks(), len(before))
}

// endsWhatIsStuck has the worker fail the tasks of a workflow that it does not know, which
// is as stuck as one that it cannot replay.
func (s *session) endsWhatIsStuck() {
	s.t.Helper()
	const stuck = "proxy/default/stuck"
	s.types("bin/temporal workflow start --type OfANewerRelease --task-queue egressfleet --workflow-id " + stuck)
	look := s.block(upgrade, "egressfleet_build_info", "9464")
	require.Eventually(s.t, func() bool {
		said, is := s.tries(look)
		return is && strings.Contains(said, "\ntemporal_workflow_task_execution_failed")
	}, soon, tick)
	require.Contains(s.t, s.log.String(), taskFailed)
	block := s.block(upgrade, "workflow terminate")
	require.Contains(s.t, block, " proxy/default/a ")
	s.types(strings.ReplaceAll(block, " proxy/default/a ", " "+stuck+" "))
	require.Equal(s.t, enums.WORKFLOW_EXECUTION_STATUS_TERMINATED, s.workflow(stuck).GetStatus())
}
