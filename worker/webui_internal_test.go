package main

import (
	"testing"

	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/contrib/envconfig"

	"github.com/egressfleet/egressfleet/internal/config"
)

func TestAPageLinksToTheWorkflowOfAProxy(t *testing.T) {
	t.Parallel()
	cfg := config.Config{Temporal: config.Temporal{Namespace: "crawlers", UI: "https://temporal.example/ui"}}
	p := &process{cfg: cfg, opts: Options{Environment: envconfig.EnvLookup(noEnvironment{})}}
	link, err := p.workflowURL()
	require.NoError(t, err)
	require.Equal(t, "https://temporal.example/ui/namespaces/crawlers/workflows/proxy%2Fdefault%2Fa", link("default", "a"))

	p.cfg.Temporal.UI = ""
	link, err = p.workflowURL()
	require.NoError(t, err)
	require.Nil(t, link)
}

type noEnvironment struct{}

func (noEnvironment) Environ() []string               { return nil }
func (noEnvironment) LookupEnv(string) (string, bool) { return "", false }
