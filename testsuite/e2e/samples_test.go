package e2e

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	v1 "github.com/egressfleet/egressfleet/api/v1"
	"github.com/egressfleet/egressfleet/providers/all"
	"github.com/egressfleet/egressfleet/testsuite/devserver"
	"github.com/egressfleet/egressfleet/testsuite/gcefake"
	"github.com/egressfleet/egressfleet/testsuite/guides"
	"github.com/egressfleet/egressfleet/testsuite/kubeapi"
)

// inLabs are the types whose samples need machines that a test of this package cannot start,
// and where they are run. Here the worker takes the sample, and the Proxy says what it lacks.
var inLabs = map[string]string{"kvm": "make test-integration-kvm"}

// backends start what the sample of a type speaks to, and return the sample with the
// places in it that only this machine has. Every type has one.
var backends = map[string]func(w *world, sample string) string{
	"local":      func(_ *world, sample string) string { return sample },
	"gcp":        fakeCompute,
	"kubernetes": apiServer,
}

// fakeCompute starts a Compute Engine and points the sample to it.
func fakeCompute(w *world, sample string) string {
	const line = "      # endpoint: "
	require.Contains(w.t, sample, line)
	cloud := gcefake.Start(w.t, gcefake.Options{Pace: gcefake.Pace{Pending: tick, Running: tick, Staging: tick}})
	return strings.Replace(sample, line,
		"      endpoint: "+cloud.URL+"\n      insecureNoAuthentication: true\n"+line, 1)
}

// apiServer starts one that grants the shipped Role, and gives the sample its kubeconfig.
func apiServer(w *world, sample string) string {
	const block = "    kubernetes:\n"
	require.Contains(w.t, sample, block)
	path := filepath.Join(w.dir, "kubeconfig")
	server := kubeapi.New(w.t, kubeapi.Rules(w.t, "../../deploy/kubernetes/rbac.yaml", "e2e"))
	server.WriteKubeconfig(w.t, path, kubeapi.Token)
	return strings.Replace(sample, block, block+"      kubeconfig: "+path+"\n", 1)
}

func TestTheSamplesOfEveryTypeAreLoadedAndApplied(t *testing.T) {
	t.Parallel()
	root, err := devserver.Root()
	require.NoError(t, err)
	for _, f := range all.Factories() {
		t.Run(f.Type(), func(t *testing.T) {
			t.Parallel()
			if lab, ok := inLabs[f.Type()]; ok {
				takesTheSample(t, root, f.Type(), lab)
				return
			}
			start := backends[f.Type()]
			require.NotNil(t, start, "nothing is here that the sample of the type %q could run on: add it to backends",
				f.Type())
			w := newWorld(t)
			sample, err := os.ReadFile(guides.Sample(root, f.Type(), guides.SampleProviders))
			require.NoError(t, err)
			w.write("providers.yaml", start(w, string(sample)))
			w.start()
			w.starter("apply", "-f", guides.Sample(root, f.Type(), guides.SampleProxy))
			var proxies []v1.Proxy
			require.Eventually(t, func() bool { proxies = w.list(); return len(proxies) == 1 }, soon, tick)
			w.running(proxies[0].Metadata.Name)
			w.deleteAll()
		})
	}
}

// takesTheSample has a worker load the sample of a type and apply its Proxy, which then tells
// in a condition why there is no instance yet, and leaves.
func takesTheSample(t *testing.T, root, typ, lab string) {
	t.Helper()
	t.Logf("the sample of %s makes an instance in %s", typ, lab)
	w := newWorld(t)
	sample, err := os.ReadFile(guides.Sample(root, typ, guides.SampleProviders))
	require.NoError(t, err)
	w.write("providers.yaml", string(sample))
	w.start()
	w.starter("apply", "-f", guides.Sample(root, typ, guides.SampleProxy))
	require.Eventually(t, func() bool {
		proxies := w.list()
		if len(proxies) != 1 {
			return false
		}
		c, told := proxies[0].Status.Condition(v1.ConditionProvisioned)
		return told && c.Reason == v1.ReasonTransientError
	}, soon, tick)
	name := w.list()[0].Metadata.Name
	w.starter("delete", name, "--skip-cleanup", "--reason", "the sample has no machines")
	require.Eventually(t, func() bool { return len(w.list()) == 0 }, soon, tick)
}
