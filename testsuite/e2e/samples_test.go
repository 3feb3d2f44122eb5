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
	"github.com/egressfleet/egressfleet/testsuite/guides"
	"github.com/egressfleet/egressfleet/testsuite/kubeapi"
)

// backends start what the sample of a type speaks to, and return the sample with the
// places in it that only this machine has. Every type has one.
var backends = map[string]func(w *world, sample string) string{
	"kubernetes": apiServer,
	"local":      func(_ *world, sample string) string { return sample },
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
