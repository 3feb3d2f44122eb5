package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/egressfleet/egressfleet/internal/config"
	"github.com/egressfleet/egressfleet/providers/gcp"
	"github.com/egressfleet/egressfleet/providers/registry"
)

func TestTheFlagsOfAnotherBackendGoTogether(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		in     devBackend
		beside []string
		want   string
	}{
		{devBackend{providers: "p.yaml"}, nil, "--providers and --proxies go together"},
		{devBackend{proxies: "p.yaml"}, nil, "--providers and --proxies go together"},
		{devBackend{}, []string{"gcefaked"}, "--beside needs --providers"},
	} {
		_, err := c.in.absolute(c.beside)
		require.ErrorContains(t, err, c.want)
	}
	b, err := devBackend{providers: "p.yaml", proxies: "q.yaml"}.absolute([]string{"gcefaked", "-guests"})
	require.NoError(t, err)
	require.True(t, filepath.IsAbs(b.providers), "the worker runs elsewhere")
	require.Equal(t, []string{"gcefaked", "-guests"}, b.beside)
	b, err = devBackend{}.absolute(nil)
	require.NoError(t, err)
	require.Equal(t, devBackend{}, b)
}

func TestAMissingFileOrProgramOfAnotherBackendIsNamed(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	b := devBackend{filepath.Join(dir, "p.yaml"), filepath.Join(dir, "q.yaml"), []string{"none"}}
	require.ErrorContains(t, b.check(), "--providers: ")
	require.ErrorContains(t, b.check(), b.providers)
	_, err := b.sampleProxies()
	require.ErrorContains(t, err, "--proxies: ")
	require.ErrorContains(t, devSettings{binaries: dir, devBackend: b}.checkBinaries(), filepath.Join(dir, temporalBinary))
	for _, name := range []string{temporalBinary, workerBinary} {
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), nil, 0o600))
	}
	require.ErrorContains(t, devSettings{binaries: dir, devBackend: b}.checkBinaries(), filepath.Join(dir, "none"))
}

func TestTheSamplesOfTheFakeFitTogether(t *testing.T) {
	t.Parallel()
	b := devBackend{providers: "../docs/samples/gcp/fake.yaml", proxies: "../docs/samples/gcp/fake-proxies.yaml"}
	entries, err := registry.LoadFile(b.providers)
	require.NoError(t, err)
	require.Len(t, entries, 1)
	require.Equal(t, gcp.Type, entries[0].Type)
	require.Equal(t, []string{entries[0].Name}, providerNames(t, b.providers))
	proxies, err := b.sampleProxies()
	require.NoError(t, err)
	require.Len(t, proxies, 2)
	require.NotEqual(t, proxies[0].Spec.Port, proxies[1].Spec.Port, "where there is one address")
	for _, p := range proxies {
		require.Equal(t, entries[0].Name, p.Spec.Provider)
	}
}

func TestTheWorkerOfARunFollowsTheFileThatItWasGiven(t *testing.T) {
	t.Parallel()
	home := &devHome{dir: t.TempDir()}
	s, err := devSettingsFrom(from(nil))
	require.NoError(t, err)
	s.providers = "/some/providers.yaml"
	require.NoError(t, s.writeConfig(home))
	cfg, err := config.Sources{File: home.path(workerFile)}.Load()
	require.NoError(t, err)
	require.Equal(t, s.providers, cfg.ProvidersFile)
	require.NoFileExists(t, home.path(providersFile))
}

// The state of a run on a backend that is gone is nobody's; that of another run is.
func TestOnlyTheStateOfARunWhoseBackendIsGoneIsForgotten(t *testing.T) {
	t.Parallel()
	home := &devHome{dir: t.TempDir()}
	passing := devBackend{beside: []string{"gcefaked"}}
	require.NoError(t, os.WriteFile(home.path(databaseFile), nil, 0o600))
	require.NoError(t, devBackend{}.forget(home))
	require.FileExists(t, home.path(databaseFile), "the next run finds it")
	require.NoError(t, os.WriteFile(home.path(providersFile), nil, 0o600))
	err := passing.forget(home)
	require.ErrorContains(t, err, config.EnvDevDir)
	require.ErrorContains(t, err, home.dir)
	require.FileExists(t, home.path(databaseFile))
	require.NoError(t, os.Remove(home.path(providersFile)))
	require.NoError(t, passing.forget(home))
	require.NoFileExists(t, home.path(databaseFile))
}

func TestThePageOfARunWhoseBackendEndsWithItSaysSo(t *testing.T) {
	t.Parallel()
	text, err := devPage{Proxies: []string{"127.32.0.1:3138"}, Passing: true}.text()
	require.NoError(t, err)
	require.Contains(t, text, "the instances and the state end with it")
	require.NotContains(t, text, "clean-dev")
	require.True(t, strings.HasSuffix(text, "\n\n"+readyLine+"\n"))
	s := devSettings{dir: "/d"}
	require.Contains(t, s.farewell(), "/d stay")
	s.beside = []string{"gcefaked"}
	require.Equal(t, "stopped; nothing is left", s.farewell())
}
