package guides_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"sigs.k8s.io/yaml"

	v1 "github.com/egressfleet/egressfleet/api/v1"
	"github.com/egressfleet/egressfleet/providers/all"
	"github.com/egressfleet/egressfleet/providers/registry"
	"github.com/egressfleet/egressfleet/testsuite/guides"
)

// Every type has a sample that the registry builds, and a Proxy for it. That they are
// taken by a worker is shown in testsuite/e2e.
func TestEveryTypeHasSamplesThatFitTogether(t *testing.T) {
	t.Parallel()
	for _, f := range all.Factories() {
		entries, err := registry.LoadFile(guides.Sample(root, f.Type(), guides.SampleProviders))
		require.NoError(t, err)
		set, err := registry.Build(t.Context(), registry.Options{
			Installation: "sample", Entries: entries, Factories: all.Factories(),
		})
		require.NoError(t, err)
		require.NotEmpty(t, set.Names())
		for _, e := range entries {
			require.Equal(t, f.Type(), e.Type, "the sample of a type shows that type")
		}
		p := sampleProxy(t, f.Type())
		_, configured := set.Lookup(p.Spec.Provider)
		require.True(t, configured, "spec.provider %q of the sample is none of %v", p.Spec.Provider, set.Names())
		require.NoError(t, p.Spec.Validate())
		require.NoError(t, set.Close())
	}
}

func sampleProxy(t *testing.T, typ string) (p v1.Proxy) {
	t.Helper()
	asJSON, err := yaml.YAMLToJSONStrict([]byte(read(t, "docs", "samples", typ, guides.SampleProxy)))
	require.NoError(t, err)
	decoder := json.NewDecoder(strings.NewReader(string(asJSON)))
	decoder.DisallowUnknownFields()
	require.NoError(t, decoder.Decode(&p))
	return p
}

func TestTheIndexNamesEveryGuide(t *testing.T) {
	t.Parallel()
	index := read(t, "docs", "providers", "README.md")
	for _, f := range all.Factories() {
		require.Contains(t, index, "]("+f.Type()+".md)")
	}
}
