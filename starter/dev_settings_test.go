package main

import (
	"net"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"

	v1 "github.com/egressfleet/egressfleet/api/v1"
	"github.com/egressfleet/egressfleet/docs/samples"
	"github.com/egressfleet/egressfleet/internal/config"
	"github.com/egressfleet/egressfleet/providers/all"
	"github.com/egressfleet/egressfleet/providers/registry"
)

// from is an environment.
func from(env map[string]string) func(string) string {
	return func(key string) string { return env[key] }
}

func TestDevSettingsHaveDefaults(t *testing.T) {
	t.Parallel()
	s, err := devSettingsFrom(from(nil))
	require.NoError(t, err)
	here, err := os.Getwd()
	require.NoError(t, err)
	require.Equal(t, filepath.Join(here, ".dev"), s.dir)
	var addresses []string
	for _, p := range s.ports() {
		addresses = append(addresses, p.address())
	}
	require.Equal(t, []string{
		"127.0.0.1:8080", "127.0.0.1:9464", "127.0.0.1:7233", "127.0.0.1:8233", "127.0.0.1:8443",
	}, addresses)
	require.Equal(t, "bin/starter", s.starterCall())
}

func TestDevSettingsComeFromVariables(t *testing.T) {
	t.Parallel()
	s, err := devSettingsFrom(from(map[string]string{
		"EGRESSFLEET_DEV_DIR": "/x/dev", "EGRESSFLEET_API_PORT": "1", "EGRESSFLEET_METRICS_PORT": "2",
		"EGRESSFLEET_TEMPORAL_PORT": "3", "EGRESSFLEET_UI_PORT": "4", "EGRESSFLEET_ECHO_PORT": "5",
	}))
	require.NoError(t, err)
	require.Equal(t, "/x/dev", s.dir)
	require.Equal(t, []int{1, 2, 3, 4, 5},
		[]int{s.api.port, s.metrics.port, s.temporal.port, s.ui.port, s.echo.port})
	require.Equal(t, "bin/starter --temporal-address 127.0.0.1:3", s.starterCall())
}

func TestWrongDevVariablesAreNamed(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		env  map[string]string
		want string
	}{
		"a word":        {map[string]string{"EGRESSFLEET_API_PORT": "http"}, `EGRESSFLEET_API_PORT: "http" is not a whole`},
		"too high":      {map[string]string{"EGRESSFLEET_UI_PORT": "65536"}, `EGRESSFLEET_UI_PORT: "65536" is not within`},
		"any free port": {map[string]string{"EGRESSFLEET_TEMPORAL_PORT": "0"}, `EGRESSFLEET_TEMPORAL_PORT: "0" is no port`},
		"two alike": {
			map[string]string{"EGRESSFLEET_METRICS_PORT": "8080"},
			`EGRESSFLEET_METRICS_PORT: "8080" is the port of EGRESSFLEET_API_PORT, too`,
		},
		"one on another's default": {
			map[string]string{"EGRESSFLEET_API_PORT": "8233"},
			`EGRESSFLEET_UI_PORT: "8233" is the port of EGRESSFLEET_API_PORT, too`,
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := devSettingsFrom(from(tt.env))
			require.ErrorContains(t, err, tt.want)
		})
	}
}

func TestEveryPortInUseIsNamedWithItsVariable(t *testing.T) {
	t.Parallel()
	var s devSettings
	var held []net.Listener
	for i, p := range s.ports() {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		require.NoError(t, err)
		held = append(held, l)
		*p = devPort{"VARIABLE_" + strconv.Itoa(i), "thing " + strconv.Itoa(i), l.Addr().(*net.TCPAddr).Port}
	}
	t.Cleanup(func() {
		for _, l := range held {
			_ = l.Close()
		}
	})
	require.NoError(t, held[1].Close())
	err := s.checkFree(t.Context())
	for _, i := range []int{0, 2, 3} {
		n := strconv.Itoa(i)
		require.ErrorContains(t, err, "port "+strconv.Itoa(s.ports()[i].port)+" for thing "+n+
			" is in use on 127.0.0.1: stop what uses it, or set VARIABLE_"+n+" to another port")
	}
	require.NotContains(t, err.Error(), "VARIABLE_1")
}

// On a wildcard listener no sample could have an address; one on 127.0.0.1 is in nobody's way.
func TestAPortOfASampleInUseOnEveryAddressIsNamed(t *testing.T) {
	t.Parallel()
	everywhere, err := net.Listen("tcp4", "0.0.0.0:0")
	require.NoError(t, err)
	defer func() { _ = everywhere.Close() }()
	one, err := net.Listen("tcp4", "127.0.0.1:0")
	require.NoError(t, err)
	defer func() { _ = one.Close() }()
	sample := func(name string, l net.Listener) v1.Proxy {
		return v1.Proxy{
			Metadata: v1.Metadata{Name: name}, Spec: v1.ProxySpec{Port: l.Addr().(*net.TCPAddr).Port},
		}
	}
	err = checkSamplePorts(t.Context(), "f.yaml", []v1.Proxy{sample("sample-a", everywhere), sample("sample-b", one)})
	if runtime.GOOS != "linux" { // there a wildcard listener leaves loopback addresses to others
		require.NoError(t, err)
		return
	}
	require.ErrorContains(t, err, "port "+strconv.Itoa(everywhere.Addr().(*net.TCPAddr).Port)+
		" for the proxy sample-a (spec.port in f.yaml) is in use on every address: stop what uses it")
	require.NotContains(t, err.Error(), "sample-b")
}

func TestTheServerKeepsItsStateAndKnowsTheAttributes(t *testing.T) {
	t.Parallel()
	s := devSettings{temporal: devPort{port: 3}, ui: devPort{port: 4}}
	require.Equal(t, []string{
		"server", "start-dev", "--ip", "127.0.0.1", "--port", "3", "--ui-port", "4", "--db-filename", "/x/temporal.db",
		"--sqlite-pragma", "journal_mode=WAL", "--sqlite-pragma", "synchronous=NORMAL",
		"--search-attribute", "ProxyPhase=Keyword", "--search-attribute", "ProxyProvider=Keyword",
		"--search-attribute", "ProxyRegion=Keyword", "--search-attribute", "ProxyReason=Keyword",
		"--search-attribute", "ProxyHealthy=Bool", "--search-attribute", "ProxyChanged=Datetime",
	}, s.serverArgs("/x/temporal.db"))
}

func TestAChildIsNotSentElsewhereByTheEnvironment(t *testing.T) {
	t.Parallel()
	require.Equal(t, []string{"PATH=/bin", "EGRESSFLEET_LOG_LEVEL=debug"}, childEnv([]string{
		"PATH=/bin", "TEMPORAL_ADDRESS=prod:7233", "TEMPORAL_API_KEY=x", "EGRESSFLEET_INSTALLATION=prod",
		"EGRESSFLEET_LOG_LEVEL=debug", "EGRESSFLEET_API_PORT=1", "EGRESSFLEET_CODEC_KEYS=k", "EGRESSFLEET_SECRET_A_B=s",
	}))
	require.Equal(t, []string{"EGRESSFLEET_CODEC_KEYS=k", "EGRESSFLEET_SECRET_A_B=s"}, childEnv([]string{
		"EGRESSFLEET_CODEC_KEYS=k", "EGRESSFLEET_SECRET_A_B=s", "EGRESSFLEET_SECRETS_DIR=d",
	}, "CODEC_", "SECRET_"))
}

func TestTheWorkerOfARunReadsWhatTheRunWrites(t *testing.T) {
	t.Parallel()
	home := &devHome{dir: filepath.Join(t.TempDir(), "a: dir # odd")}
	require.NoError(t, os.Mkdir(home.dir, 0o700))
	s, err := devSettingsFrom(from(map[string]string{
		"EGRESSFLEET_API_PORT": "1", "EGRESSFLEET_METRICS_PORT": "2", "EGRESSFLEET_ECHO_PORT": "3",
	}))
	require.NoError(t, err)
	require.NoError(t, s.writeConfig(home))

	cfg, err := config.Sources{File: home.path("worker.yaml")}.Load()
	require.NoError(t, err)
	require.Equal(t, "dev", cfg.Installation)
	require.Equal(t, "api,worker", cfg.RoleNames())
	require.Equal(t, []string{"127.0.0.1:1", "127.0.0.1:2", "127.0.0.1:7233", "127.0.0.1:3"},
		[]string{cfg.API.Address(), cfg.Metrics.Address(), cfg.Temporal.Address(), cfg.Echo.Listen().Address()})
	require.Equal(t, "http://127.0.0.1:8233", cfg.Temporal.UI)
	require.Equal(t, []string{"local"}, providerNames(t, cfg.ProvidersFile))
}

func TestTheSampleConfigurationIsRight(t *testing.T) {
	t.Parallel()
	cfg, err := config.Sources{File: "../docs/samples/worker.yaml"}.Load()
	require.NoError(t, err)
	require.Equal(t, "docs/samples/providers.yaml", cfg.ProvidersFile)
	require.Equal(t, []string{"local"}, providerNames(t, "../"+cfg.ProvidersFile))
	require.NotEmpty(t, samples.Proxies)
}

func providerNames(t *testing.T, file string) []string {
	t.Helper()
	entries, err := registry.LoadFile(file)
	require.NoError(t, err)
	set, err := registry.Build(t.Context(), registry.Options{
		Installation: "dev", Entries: entries, Factories: all.Factories(),
	})
	require.NoError(t, err)
	return set.Names()
}

func TestThePageShowsEverything(t *testing.T) {
	t.Parallel()
	text, err := devPage{
		API: "127.0.0.1:8080", Metrics: "127.0.0.1:9464", Temporal: "127.0.0.1:7233", UI: "127.0.0.1:8233",
		Dir: "/somewhere/.dev", Proxies: []string{"127.64.0.1:3128", "127.64.0.2:3129"}, Starter: "bin/starter",
		CurlFlags: curlFlags(from(nil)),
	}.text()
	require.NoError(t, err)
	golden(t, "page.txt", text)
}

func TestCurlIsKeptFromGoingAroundTheProxy(t *testing.T) {
	t.Parallel()
	require.Equal(t, " --noproxy ''", curlFlags(from(map[string]string{"NO_PROXY": "127.0.0.1"})))
	require.Equal(t, " --noproxy ''", curlFlags(from(map[string]string{"no_proxy": "127.0.0.1"})))
}
