package all_test

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/egressfleet/egressfleet/providers"
	"github.com/egressfleet/egressfleet/providers/all"
	"github.com/egressfleet/egressfleet/providers/registry"
)

func TestEveryTypeIsListedOnce(t *testing.T) {
	t.Parallel()
	var types []string
	for _, f := range all.Factories() {
		require.NotContains(t, types, f.Type())
		types = append(types, f.Type())
	}
	require.Equal(t, []string{"local", "kvm", "gcp", "kubernetes"}, types)
}

func TestLocalIsBuiltFromItsBlock(t *testing.T) {
	t.Parallel()
	env := registry.Env{Name: "here", Installation: "dev"}
	build := func(block string) (providers.Provider, error) {
		return all.Factories()[0].Build(t.Context(), env, json.RawMessage(block))
	}

	p, err := build(`{"dir": "` + t.TempDir() + `", "addressRange": "127.0.0.1/32"}`)
	require.NoError(t, err)
	_, err = p.Get(t.Context(), "elsewhere/x")
	require.ErrorContains(t, err, "here: get elsewhere/x: Permanent")

	p, err = build(`{"directory": "/x"}`)
	require.ErrorContains(t, err, "directory")
	require.Nil(t, p)

	p, err = build(`{}`)
	require.ErrorContains(t, err, "dir")
	require.Nil(t, p)
}
