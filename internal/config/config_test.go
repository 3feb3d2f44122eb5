package config_test

import (
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/spf13/pflag"
	"github.com/stretchr/testify/require"

	"github.com/egressfleet/egressfleet/internal/config"
)

// load reads a file's text, variables and arguments, as a worker does.
func load(t *testing.T, text string, environ, args []string) (config.Config, error) {
	t.Helper()
	s := config.Sources{Environ: environ, Flags: pflag.NewFlagSet("worker", pflag.ContinueOnError)}
	config.AddFlags(s.Flags)
	require.NoError(t, s.Flags.Parse(args))
	if text != "" {
		s.File = filepath.Join(t.TempDir(), "worker.yaml")
		require.NoError(t, os.WriteFile(s.File, []byte(text), 0o600))
	}
	return s.Load()
}

func TestDefaultsServeOnLoopback(t *testing.T) {
	t.Parallel()
	got, err := load(t, "installation: dev\nprovidersFile: p.yaml\n", nil, nil)
	require.NoError(t, err)
	require.Equal(t, config.Config{
		Installation: "dev", Roles: []config.Role{config.RoleAPI, config.RoleWorker}, ProvidersFile: "p.yaml",
		Temporal:   config.Temporal{Host: "127.0.0.1", Port: 7233, Namespace: "default"},
		API:        config.API{Listen: config.Listen{Host: "127.0.0.1", Port: 8080}},
		Metrics:    config.Listen{Host: "127.0.0.1", Port: 9464},
		Echo:       config.Echo{Port: 8443},
		Log:        config.Log{Format: "text"},
		SteadyPoll: time.Hour,
		Intervals:  config.Intervals{GC: 10 * time.Minute, Drift: 2 * time.Minute, Check: 2 * time.Minute},
		Feedback: config.Feedback{
			BanFor: time.Hour, Window: 15 * time.Minute, ReplaceAt: 5, HoldAt: 5, HoldFor: 5 * time.Minute, Budget: 6, Floor: 80,
		},
	}, got)
	require.Equal(t, "127.0.0.1:8080", got.API.Address())
	require.Equal(t, "installation=dev roles=api,worker temporal=127.0.0.1:7233/default api=127.0.0.1:8080 "+
		"metrics=127.0.0.1:9464 providersFile=p.yaml", got.String())
}

const full = `
installation: from-file
roles: [worker]
providersFile: file.yaml
secretsDir: /run/secrets
maxConcurrentActivities: 7
maxConcurrentWorkflowTasks: 9
stickyCacheSize: 8
deployment: {name: fleet, build: v1.2_rc-3}
steadyPoll: 90s
gc: {interval: 1h}
drift: {interval: 3m}
check: {interval: 45s}
feedback: {banFor: 30m, window: 10m, replaceAt: 3, holdAt: 0, holdFor: 2m, budget: 1, floor: 90}
api: {host: "::1", port: 1, tokensFile: /run/api-tokens.yaml, tls: {certificate: /run/tls.crt, key: /run/tls.key}}
metrics: {port: 2}
echo: {port: 4, certificate: /run/echo.pem}
health: {target: "probe.example:8443"}
temporal:
  {host: temporal.example, port: 3, namespace: crawl, ui: "https://ui.example/temporal/", apiKeyFile: /run/temporal-key}
log: {level: debug-4, format: json}
codec:
  keys: /run/keys
  current: 2026-11
  tokensFile: /run/tokens
  origins: [https://ui.example, "http://127.0.0.1:8233"]
`

func TestEveryKeyOfAFileIsRead(t *testing.T) {
	t.Parallel()
	got, err := load(t, full, nil, nil)
	require.NoError(t, err)
	require.Equal(t, config.Config{
		Installation: "from-file", Roles: []config.Role{config.RoleWorker}, ProvidersFile: "file.yaml",
		SecretsDir: "/run/secrets",
		Temporal: config.Temporal{
			Host: "temporal.example", Port: 3, Namespace: "crawl", UI: "https://ui.example/temporal",
			APIKeyFile: "/run/temporal-key",
		},
		API: config.API{
			Listen: config.Listen{Host: "::1", Port: 1}, TokensFile: "/run/api-tokens.yaml",
			TLS: config.TLS{Certificate: "/run/tls.crt", Key: "/run/tls.key"},
		},
		Metrics: config.Listen{Host: "127.0.0.1", Port: 2},
		Echo:    config.Echo{Port: 4, Certificate: "/run/echo.pem"},
		Health:  config.Health{Target: "probe.example:8443"},
		Log:     config.Log{Level: slog.LevelDebug - 4, Format: "json"},
		Codec: config.Codec{
			Keys: "/run/keys", Current: "2026-11", TokensFile: "/run/tokens",
			Origins: []string{"https://ui.example", "http://127.0.0.1:8233"},
		},
		MaxConcurrentActivities: 7, MaxConcurrentWorkflowTasks: 9, StickyCacheSize: 8,
		Deployment: config.Deployment{Name: "fleet", BuildID: "v1.2_rc-3"}, SteadyPoll: 90 * time.Second,
		Intervals: config.Intervals{GC: time.Hour, Drift: 3 * time.Minute, Check: 45 * time.Second},
		Feedback: config.Feedback{
			BanFor: 30 * time.Minute, Window: 10 * time.Minute, ReplaceAt: 3, HoldFor: 2 * time.Minute, Budget: 1, Floor: 90,
		},
	}, got)
	require.Equal(t, "[::1]:1", got.API.Address())
	require.Equal(t, "127.0.0.1:4", got.Echo.Listen().Address(), "on loopback, always")
}

func TestAnAPIThatOthersReachNeedsTokens(t *testing.T) {
	t.Parallel()
	for host, open := range map[string]bool{
		"127.0.0.1": true, "127.9.9.9": true, "::1": true, "localhost": true,
		"0.0.0.0": false, "::": false, "10.0.0.1": false, "fleet.example": false, "localhost.example": false,
	} {
		text := "installation: dev\nroles: [api]\napi: {host: '" + host + "'}\n"
		_, err := load(t, text, nil, nil)
		if open {
			require.NoError(t, err, host)
			continue
		}
		require.ErrorContains(t, err, `api.host: "`+host+`" can be reached from elsewhere, and needs api.tokensFile`)
		_, err = load(t, text, nil, []string{"--api-tokens-file", "tokens.yaml"})
		require.NoError(t, err, host)
		_, err = load(t, text, nil, []string{"--role", "worker", "--providers-file", "p.yaml"})
		require.NoError(t, err, "a process that serves no API")
	}
	_, err := load(t, "installation: dev\nroles: [api]\napi: {tls: {key: k.pem}}\n", nil, nil)
	require.ErrorContains(t, err, `api.tls.key: "k.pem" needs api.tls.certificate`)
	_, err = load(t, "installation: dev\nroles: [api]\napi: {tls: {certificate: c.pem}}\n", nil, nil)
	require.ErrorContains(t, err, `api.tls.certificate: "c.pem" needs api.tls.key`)
}

func TestAVariableBeatsTheFileAndAFlagBeatsBoth(t *testing.T) {
	t.Parallel()
	environ := []string{
		"EGRESSFLEET_INSTALLATION=from-env", "EGRESSFLEET_API_PORT=11", "EGRESSFLEET_METRICS_PORT=12",
		"EGRESSFLEET_ROLES=api, worker", "EGRESSFLEET_PROVIDERS_FILE=env.yaml",
		"EGRESSFLEET_MAX_CONCURRENT_ACTIVITIES=17", "EGRESSFLEET_TEMPORAL_PORT=13", "EGRESSFLEET_LOG_LEVEL=",
	}
	got, err := load(t, full, environ, []string{"--api-port", "21", "--role=worker", "--role", "worker"})
	require.NoError(t, err)
	require.Equal(t, "from-env", got.Installation)
	require.Equal(t, []config.Role{config.RoleWorker}, got.Roles)
	require.Equal(t, 21, got.API.Port)
	require.Equal(t, 12, got.Metrics.Port)
	require.Equal(t, 13, got.Temporal.Port)
	require.Equal(t, 17, got.MaxConcurrentActivities)
	require.Equal(t, "env.yaml", got.ProvidersFile)
	require.Equal(t, slog.LevelDebug-4, got.Log.Level, "an empty variable is none")
	require.Empty(t, got.Warnings)
}

func TestTheRoleAPINeedsNoProviders(t *testing.T) {
	t.Parallel()
	got, err := load(t, "", nil, []string{"--installation=dev", "--role=api"})
	require.NoError(t, err)
	require.True(t, got.Plays(config.RoleAPI))
	require.False(t, got.Plays(config.RoleWorker))
}

func TestTheRoleOutsideNeedsNoProviders(t *testing.T) {
	t.Parallel()
	got, err := load(t, "", nil, []string{"--installation=dev", "--role=outside"})
	require.NoError(t, err)
	require.Equal(t, []config.Role{config.RoleOutside}, got.Roles)
}

func TestWhatIsWrongIsNamed(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		text    string
		environ []string
		args    []string
		want    []string
	}{
		"no installation": {
			text: "providersFile: p\n",
			want: []string{"installation: is required", "--installation, EGRESSFLEET_INSTALLATION"},
		},
		"an unknown key": {
			text: "installation: dev\nproviderFile: p\n",
			want: []string{"worker.yaml:2: providerFile: unknown key"},
		},
		"an installation with capitals": {
			args: []string{"--installation=Prod_1", "--role=api"},
			want: []string{`installation: "Prod_1" is not a DNS label`, "from --installation"},
		},
		"no providers for a worker": {
			text: "installation: dev\n", want: []string{"providersFile: is required for the role worker"},
		},
		"feedback beyond its bounds": {
			text: "installation: dev\nroles: [api]\nfeedback: {banFor: 10s, holdAt: 33, budget: -1, floor: 101, window: 25h}\n",
			want: []string{
				`feedback.banFor: "10s" is not a duration within 1m0s to 168h0m0s`,
				`feedback.holdAt: "33" is not a whole number within 0 to 32`,
				`feedback.budget: "-1"`, `feedback.floor: "101" is not a whole number within 0 to 100`, `feedback.window: "25h"`,
			},
		},
		"an unknown key in a section": {
			text: "api:\n  prot: 80\n", want: []string{"worker.yaml:2: api.prot: unknown key"},
		},
		"a key in another case": {
			text: "ProvidersFile: p\n", want: []string{"worker.yaml:1: ProvidersFile: unknown key"},
		},
		"a key that is there twice": {
			text: "installation: a\ninstallation: b\n", want: []string{"worker.yaml:2: installation: is there twice"},
		},
		"a value in the place of a section": {
			text: "api: 8080\n", want: []string{`worker.yaml:1: api: "8080" is not a list of keys and values`},
		},
		"a section in the place of a value": {
			text: "installation: {name: dev}\n", want: []string{"worker.yaml:1: installation: is not a single value"},
		},
		"a list in the place of a value": {
			text: "api: {port: [80, 81]}\n", want: []string{"worker.yaml:1: api.port: is not a single value"},
		},
		"a file that is no mapping": {
			text: "dev\n", want: []string{`worker.yaml:1: the file: "dev" is not a list of keys and values`},
		},
		"a file that is no YAML": {
			text: "a: [\n", want: []string{"worker.yaml: yaml:"},
		},
		"two documents": {
			text: "installation: a\n---\ninstallation: b\n", want: []string{"holds more than one YAML document"},
		},
		"a port from the file that is a word": {
			text: "installation: dev\nprovidersFile: x\napi: {port: http}\n",
			want: []string{`api.port: "http" is not a whole number (from `, "worker.yaml:3)"},
		},
		"a port from a variable that is too high": {
			text: full, environ: []string{"EGRESSFLEET_METRICS_PORT=65536"},
			want: []string{`metrics.port: "65536" is not within 0 to 65535 (from EGRESSFLEET_METRICS_PORT)`},
		},
		"a negative port": {
			text: full, args: []string{"--temporal-port=-1"},
			want: []string{`temporal.port: "-1" is not within 0 to 65535 (from --temporal-port)`},
		},
		"an unknown role": {
			text: full, args: []string{"--role=worker,gateway"},
			want: []string{`roles: "gateway" is none of "worker", "api" and "outside" (from --role)`},
		},
		"no role": {
			text: "installation: dev\nroles: []\n", want: []string{`roles: "" is none of "worker", "api" and "outside"`},
		},
		"a second prober where the first one is": {
			text: full, args: []string{"--role=outside,worker"},
			want: []string{`roles: "outside,worker" holds "worker" and "outside"`, "from --role"},
		},
		"a level that is none": {
			text: full, environ: []string{"EGRESSFLEET_LOG_LEVEL=loud"},
			want: []string{`log.level: "loud" is not a level`, "from EGRESSFLEET_LOG_LEVEL"},
		},
		"a format that is none": {
			text: full, environ: []string{"EGRESSFLEET_LOG_FORMAT=xml"},
			want: []string{`log.format: "xml" is neither "text" nor "json"`},
		},
		"a deployment without a build": {
			text: "installation: dev\nroles: [api]\ndeployment: {name: fleet}\n",
			want: []string{`deployment.name: "fleet" needs deployment.build`},
		},
		"a build without a deployment": {
			text: "installation: dev\nroles: [api]\ndeployment: {build: v1}\n",
			want: []string{`deployment.build: "v1" needs deployment.name`},
		},
		"a deployment that Temporal would refuse": {
			text: "installation: dev\nroles: [api]\ndeployment: {name: a.b, build: \"a:b\"}\n",
			want: []string{`deployment.name: "a.b" is not a DNS label`, `deployment.build: "a:b" is not 1 to 63 letters`},
		},
		"no room for an activity": {
			text: full, args: []string{"--max-concurrent-activities=0"},
			want: []string{`maxConcurrentActivities: "0" is neither auto nor a whole number of at least 1`},
		},
		"a workflow task that waits for itself": {
			text: full, args: []string{"--max-concurrent-workflow-tasks=1"},
			want: []string{`maxConcurrentWorkflowTasks: "1" is neither auto nor a whole number of at least 2`},
		},
		"an empty host": {
			text: "installation: dev\nprovidersFile: x\napi: {host: \"\"}\n", want: []string{`api.host: "" is empty`},
		},
		"tokens without keys": {
			text: "installation: dev\nprovidersFile: x\ncodec: {tokensFile: t}\n",
			want: []string{`codec.tokensFile: "t" needs codec.keys (EGRESSFLEET_CODEC_KEYS)`},
		},
		"a current key without keys": {
			text: "installation: dev\nprovidersFile: x\n", environ: []string{"EGRESSFLEET_CODEC_CURRENT=a"},
			want: []string{`codec.current: "a" needs codec.keys`},
		},
		"a Web UI that is no page": {
			text: full, args: []string{"--temporal-ui=127.0.0.1:8233"},
			want: []string{`temporal.ui: "127.0.0.1:8233" is not the address of a page`},
		},
		"a Web UI with a script": {
			text: full, args: []string{"--temporal-ui=javascript:alert(1)"},
			want: []string{`"javascript:alert(1)" is not the address`},
		},
		"origins without tokens": {
			text: "installation: dev\nprovidersFile: x\ncodec: {keys: k, origins: [http://a]}\n",
			want: []string{`codec.origins: "http://a" needs codec.tokensFile`},
		},
		"every origin": {
			text: full, environ: []string{"EGRESSFLEET_CODEC_ORIGINS=*"},
			want: []string{`codec.origins: "*" is not an origin`, "from EGRESSFLEET_CODEC_ORIGINS"},
		},
		"an origin with a star": {
			text: full, args: []string{"--codec-origins=https://*.a"}, want: []string{`"https://*.a" is not an origin`},
		},
		"an origin with a path": {
			text: full, args: []string{"--codec-origins=https://a/"}, want: []string{`"https://a/" is not an origin`},
		},
		"an origin of no scheme": {
			text: full, args: []string{"--codec-origins=a.example"}, want: []string{`"a.example" is not an origin`},
		},
		"two faults at once": {
			text: "installation: dev\nprovidersFile: x\napi: {port: a}\nmetrics: {port: b}\n",
			want: []string{`api.port: "a"`, `metrics.port: "b"`},
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := load(t, tt.text, tt.environ, tt.args)
			require.Error(t, err)
			for _, want := range tt.want {
				require.ErrorContains(t, err, want)
			}
		})
	}
}

func TestAFileThatIsNotThereIsNamed(t *testing.T) {
	t.Parallel()
	_, err := config.Sources{File: "/nowhere/worker.yaml"}.Load()
	require.ErrorIs(t, err, os.ErrNotExist)
	require.ErrorContains(t, err, "/nowhere/worker.yaml")
}

func TestAKeyWithoutAValueKeepsTheDefault(t *testing.T) {
	t.Parallel()
	got, err := load(t, "installation: dev\nprovidersFile: x\napi:\n  port:\n", nil, nil)
	require.NoError(t, err)
	require.Equal(t, 8080, got.API.Port)
}

func TestVariablesThatAreNotSettingsOnlyWarn(t *testing.T) {
	t.Parallel()
	got, err := load(t, full, []string{
		"EGRESSFLEET_API_PORT=tcp://10.0.0.1:8080", "EGRESSFLEET_API_SERVICE_HOST=10.0.0.1", "PATH=/bin",
		"EGRESSFLEET_UI_PORT=8233", "EGRESSFLEET_ECHO_PORT=8443", "EGRESSFLEET_DEV_DIR=.dev", "EGRESSFLEET_PROT=1",
		"EGRESSFLEET_API_TOKEN=t",
		"EGRESSFLEET_SECRET_INIT_USER_DATA=s3nt1nel", "EGRESSFLEET_CODEC_KEYS=/run/other",
	}, nil)
	require.NoError(t, err)
	require.Equal(t, 1, got.API.Port, "a link to a Service is not a port")
	require.Equal(t, "/run/other", got.Codec.Keys)
	require.Equal(t, 8443, got.Echo.Port)
	require.Equal(t, []string{
		"EGRESSFLEET_API_PORT looks like a link to a Kubernetes Service and has no effect",
		"EGRESSFLEET_API_SERVICE_HOST is no setting and has no effect",
		"EGRESSFLEET_PROT is no setting and has no effect",
	}, got.Warnings)
}

func TestTheReferenceNamesEveryFlagOnce(t *testing.T) {
	t.Parallel()
	var b strings.Builder
	require.NoError(t, config.WriteReference(&b))
	flags := pflag.NewFlagSet("worker", pflag.ContinueOnError)
	config.AddFlags(flags)
	flags.VisitAll(func(f *pflag.Flag) {
		require.Equal(t, 1, strings.Count(b.String(), "`--"+f.Name+"`"), f.Name)
	})
	require.Contains(t, b.String(), "| `providersFile` | `EGRESSFLEET_PROVIDERS_FILE` | `--providers-file` | – |")
	require.Contains(t, b.String(), "| `api.port` | `EGRESSFLEET_API_PORT` | `--api-port` | `8080` |")
	lines := strings.Split(strings.TrimSpace(b.String()), "\n")[2:]
	require.IsNonDecreasing(t, lines, "keys are sorted")
}
