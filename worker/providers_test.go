package main_test

import (
	"context"
	"encoding/json"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	v1 "github.com/egressfleet/egressfleet/api/v1"
	"github.com/egressfleet/egressfleet/internal/config"
	"github.com/egressfleet/egressfleet/testsuite/output"
	worker "github.com/egressfleet/egressfleet/worker"
)

// serving is a process with the role api and a providers file, or none for "".
type serving struct {
	t    *testing.T
	file string
	at   worker.Addresses
	log  *output.Log
}

func serveProviders(t *testing.T, text string) *serving {
	t.Helper()
	s := &serving{t: t, file: filepath.Join(t.TempDir(), "providers.yaml"), log: new(output.Log)}
	cfg := settings(serve(t, &temporal{}))
	cfg.Roles = []config.Role{config.RoleAPI}
	if text != "" {
		cfg.ProvidersFile = s.file
		s.write(text)
	}
	ctx, cancel := context.WithCancel(t.Context())
	up, done := make(chan worker.Addresses, 1), make(chan error, 1)
	go func() {
		done <- worker.Run(ctx, cfg, worker.Options{
			Log: s.log, Environment: quiet(), Up: func(a worker.Addresses) { up <- a },
		})
	}()
	t.Cleanup(func() { cancel(); require.NoError(t, <-done) })
	s.at = <-up
	return s
}

// write swaps the file: no half of it is ever there to be read.
func (s *serving) write(text string) {
	require.NoError(s.t, os.WriteFile(s.file+".new", []byte(text), 0o600))
	require.NoError(s.t, os.Rename(s.file+".new", s.file))
}

func (s *serving) providers() (list v1.ProviderList) {
	s.t.Helper()
	status, _, body := ask(s.t, http.MethodGet, "http://"+s.at.API+"/v1/providers")
	require.Equal(s.t, http.StatusOK, status, body)
	require.NoError(s.t, json.Unmarshal([]byte(body), &list))
	return list
}

// reaches waits until the configuration has a state.
func (s *serving) reaches(state v1.ConfigurationState) v1.ProviderList {
	s.t.Helper()
	var list v1.ProviderList
	require.Eventually(s.t, func() bool {
		list = s.providers()
		return list.Configuration.State == state
	}, time.Minute, 20*time.Millisecond)
	return list
}

// metrics are the lines about the providers file.
func (s *serving) metrics() (lines []string) {
	s.t.Helper()
	_, _, body := ask(s.t, http.MethodGet, "http://"+s.at.Metrics+"/metrics")
	for line := range strings.Lines(body) {
		if strings.HasPrefix(line, "egressfleet_providers_reload") {
			lines = append(lines, strings.TrimSpace(line))
		}
	}
	return lines
}

func local(t *testing.T, names ...string) string {
	t.Helper()
	text := "providers:\n"
	for _, name := range names {
		text += "- {name: " + name + ", type: local, local: {dir: " + t.TempDir() + "}}\n"
	}
	return text
}

func TestABadProvidersFileKeepsTheProvidersAndIsSeenEverywhere(t *testing.T) {
	t.Parallel()
	good := local(t, "here")
	s := serveProviders(t, good)
	was := s.providers()
	require.Equal(t, v1.ConfigurationLoaded, was.Configuration.State)
	require.Equal(t, "providers.yaml", was.Configuration.File)
	require.Len(t, was.Items, 1)
	require.Equal(t, "local", was.Items[0].Type)
	require.Len(t, was.Items[0].Profile, 19)
	require.Contains(t, s.metrics(), "egressfleet_providers_reload_failed 0")

	s.write(good + "- {name: here, type: local, local: {dir: x, password: hunter2}}\n")
	now := s.reaches(v1.ConfigurationRetained)
	require.Equal(t, was.Items, now.Items)
	require.Equal(t, was.Configuration.LoadedAt, now.Configuration.LoadedAt)
	require.Contains(t, now.Configuration.Error, `providers.yaml: providers[1].name: "here" is also the name of`)
	require.False(t, now.Configuration.Since.IsZero())
	require.Contains(t, s.metrics(), "egressfleet_providers_reload_failed 1")
	require.Contains(t, s.metrics(), `egressfleet_providers_reloads_total{result="failed"} 1`)
	require.Equal(t, 1, strings.Count(s.log.String(), "the providers file cannot be used"))
	require.Contains(t, s.log.String(), s.file)
	require.NotContains(t, s.log.String(), "hunter2")

	s.write(good + local(t, "there")[len("providers:\n"):])
	now = s.reaches(v1.ConfigurationLoaded)
	require.Len(t, now.Items, 2)
	require.Equal(t, was.Items[0], now.Items[0], "it was kept")
	require.True(t, now.Configuration.LoadedAt.After(was.Configuration.LoadedAt))
	require.Empty(t, now.Configuration.Error)
	require.Contains(t, s.metrics(), "egressfleet_providers_reload_failed 0")
	require.Contains(t, s.metrics(), `egressfleet_providers_reloads_total{result="ok"} 2`)
	require.Contains(t, s.log.String(), "kept 1, added [there], changed [], removed []")
}

func TestTheRoleAPIAloneShowsAFileThatWasNeverRight(t *testing.T) {
	t.Parallel()
	s := serveProviders(t, "providers: [{name: a, type: gpc}]\n")
	list := s.providers()
	require.Equal(t, v1.ConfigurationFailed, list.Configuration.State)
	require.Empty(t, list.Items)
	require.True(t, list.Configuration.LoadedAt.IsZero())
	require.Contains(t, list.Configuration.Error, `providers[0].type: "gpc" is not a provider type`)
	s.write(local(t, "a"))
	require.Len(t, s.reaches(v1.ConfigurationLoaded).Items, 1)
}

func TestTheRoleAPIAloneNeedsNoProvidersFile(t *testing.T) {
	t.Parallel()
	s := serveProviders(t, "")
	status, _, body := ask(t, http.MethodGet, "http://"+s.at.API+"/v1/providers")
	require.Equal(t, http.StatusNotFound, status)
	require.Contains(t, body, "urn:egressfleet:problem:providers-unknown")
}
