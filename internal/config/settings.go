package config

import (
	"slices"
	"strings"
)

// EnvPrefix begins every variable of ours.
const EnvPrefix = "EGRESSFLEET_"

// The variables that a person meets outside a worker's settings, or in an error
// about a port.
const (
	EnvAPIPort         = EnvPrefix + "API_PORT"
	EnvMetricsPort     = EnvPrefix + "METRICS_PORT"
	EnvTemporalPort    = EnvPrefix + "TEMPORAL_PORT"
	EnvTemporalKeyFile = EnvPrefix + "TEMPORAL_API_KEY_FILE"
	EnvUIPort          = EnvPrefix + "UI_PORT"
	EnvEchoPort        = EnvPrefix + "ECHO_PORT"
	EnvEchoCertificate = EnvPrefix + "ECHO_CERTIFICATE"
	EnvDevDir          = EnvPrefix + "DEV_DIR"
	// EnvAPIToken is what the starter shows to the API; a worker never needs one.
	EnvAPIToken = EnvPrefix + "API_TOKEN"
	// The starter encrypts as the worker does.
	EnvCodecKeys    = EnvPrefix + "CODEC_KEYS"
	EnvCodecCurrent = EnvPrefix + "CODEC_CURRENT"
)

// EnvSecretPrefix begins every variable that holds the content of a secretRef.
const EnvSecretPrefix = EnvPrefix + "SECRET_"

// setting is one key of the configuration: its names, its default in text form and
// how text becomes a field. Values are text until then, whatever they come from.
type setting struct {
	key  string // in the file: "api.port"
	flag string // "api-port"
	def  string
	help string
	set  func(c *Config, text string) error
}

// env returns the variable of a setting: EGRESSFLEET_API_PORT for "api.port".
func (s setting) env() string {
	var b strings.Builder
	for _, r := range s.key {
		switch {
		case r == '.':
			b.WriteByte('_')
		case r >= 'A' && r <= 'Z':
			b.WriteByte('_')
			b.WriteRune(r)
		default:
			b.WriteRune(r)
		}
	}
	return EnvPrefix + strings.ToUpper(b.String())
}

// settings is the list of keys, sorted. A key that is not here is an error.
func settings() []setting {
	all := slices.Concat(
		apiSettings(), addressSettings(), processSettings(), capacitySettings(), deploymentSettings(), sweepSettings(),
		codecSettings(), feedbackSettings(),
	)
	slices.SortFunc(all, func(a, b setting) int { return strings.Compare(a.key, b.key) })
	return all
}

// apiSettings say where and how the API is served.
func apiSettings() []setting {
	return []setting{
		{
			"api.host", "api-host", "127.0.0.1", "address that the API listens on",
			func(c *Config, v string) error { return setNonEmpty(&c.API.Host, v) },
		},
		{
			"api.port", "api-port", "8080", "port that the API listens on; 0 takes a free one",
			func(c *Config, v string) error { return setPort(&c.API.Port, v) },
		},
		{
			"api.tls.certificate", "api-tls-certificate", "", "file with the certificate chain that the API is served with, " +
				"PEM; followed; plain HTTP where it is not set",
			func(c *Config, v string) error { c.API.TLS.Certificate = v; return nil },
		},
		{
			"api.tls.key", "api-tls-key", "", "file with the private key of api.tls.certificate, PEM",
			func(c *Config, v string) error { c.API.TLS.Key = v; return nil },
		},
		{
			"api.tokensFile", "api-tokens-file", "", "file with the tokens that the API asks for, and what each may do; " +
				"followed; without it the API asks for none, and listens on loopback only",
			func(c *Config, v string) error { c.API.TokensFile = v; return nil },
		},
	}
}

// addressSettings say where else a process serves, and where Temporal is.
func addressSettings() []setting {
	return []setting{
		{
			"echo.certificate", "echo-certificate", "", "file for the certificate of the echo target: the role api writes it, " +
				"and the roles worker and outside read it where they are another process; empty where they are one",
			func(c *Config, v string) error { c.Echo.Certificate = v; return nil },
		},
		{
			"echo.port", "echo-port", "8443", "port on loopback of the echo target, which probes of local proxies ask for; " +
				"0 takes a free one",
			func(c *Config, v string) error { return setPort(&c.Echo.Port, v) },
		},
		{
			"metrics.host", "metrics-host", "127.0.0.1", "address that /metrics listens on",
			func(c *Config, v string) error { return setNonEmpty(&c.Metrics.Host, v) },
		},
		{
			"metrics.port", "metrics-port", "9464", "port that /metrics listens on; 0 takes a free one",
			func(c *Config, v string) error { return setPort(&c.Metrics.Port, v) },
		},
		{
			"temporal.apiKeyFile", "temporal-api-key-file", "", "file with the API key for Temporal, one line; followed; " +
				"in the place of TEMPORAL_API_KEY, which is not",
			func(c *Config, v string) error { c.Temporal.APIKeyFile = v; return nil },
		},
		{
			"temporal.host", "temporal-host", "127.0.0.1", "host of the Temporal server, where TEMPORAL_ADDRESS is not set",
			func(c *Config, v string) error { return setNonEmpty(&c.Temporal.Host, v) },
		},
		{
			"temporal.namespace", "temporal-namespace", "default", "Temporal namespace, where TEMPORAL_NAMESPACE is not set",
			func(c *Config, v string) error { return setNonEmpty(&c.Temporal.Namespace, v) },
		},
		{
			"temporal.port", "temporal-port", "7233", "port of the Temporal server, where TEMPORAL_ADDRESS is not set",
			func(c *Config, v string) error { return setPort(&c.Temporal.Port, v) },
		},
		{
			"temporal.ui", "temporal-ui", "", "address of the Temporal Web UI as browsers reach it, such as " +
				"http://127.0.0.1:8233; the page links to none where it is not set",
			func(c *Config, v string) error { return setPage(&c.Temporal.UI, v) },
		},
	}
}

// processSettings say what a process is and does.
func processSettings() []setting {
	return []setting{
		{
			"installation", "installation", "", "name of the installation, a DNS label; required, one per Temporal namespace",
			func(c *Config, v string) error { return setLabel(&c.Installation, v) },
		},
		{
			"log.format", "log-format", FormatText, "form of the log: text or json",
			func(c *Config, v string) error { return setFormat(&c.Log.Format, v) },
		},
		{
			"log.level", "log-level", "info", "least level that is logged: debug, info, warn or error; " +
				"debug-4 adds detail, debug-8 the wire",
			func(c *Config, v string) error { return setLevel(&c.Log.Level, v) },
		},
		{
			"health.target", "health-target", "", "host or host:port that proxies are asked for by probes, those of this " +
				"machine excepted; nobody is asked where it is not set",
			func(c *Config, v string) error { c.Health.Target = v; return nil },
		},
		{
			"providersFile", "providers-file", "", "file that lists the providers, and is followed; " +
				"required for the role worker, and shown by the role api",
			func(c *Config, v string) error { c.ProvidersFile = v; return nil },
		},
		{
			"roles", "role", "api,worker", "what the process does: worker, api, or both; or outside, " +
				"the second prober, which runs where no client of the proxies is",
			func(c *Config, v string) error { return setRoles(&c.Roles, v) },
		},
		{
			"steadyPoll", "steady-poll", "1h", "how often a proxy itself looks at its running instance; " +
				"the drift sweep does every drift.interval; at least 1s",
			func(c *Config, v string) error { return setPoll(&c.SteadyPoll, v) },
		},
		{
			"secretsDir", "secrets-dir", "", "directory of mounted secrets: one directory a secret, one file a key",
			func(c *Config, v string) error { c.SecretsDir = v; return nil },
		},
	}
}

// capacitySettings say how much a process has in its memory at one time.
func capacitySettings() []setting {
	const enough = "; auto is as many as the memory limit is enough for, at most "
	return []setting{
		{
			"maxConcurrentActivities", "max-concurrent-activities", auto, "provider calls at one time" + enough + "200",
			func(c *Config, v string) error { return setCount(&c.MaxConcurrentActivities, v, 1) },
		},
		// The SDK takes no 1: a workflow that is kept would never get its turn.
		{
			"maxConcurrentWorkflowTasks", "max-concurrent-workflow-tasks", auto, "workflow tasks at one time, at least 2" +
				enough + "200",
			func(c *Config, v string) error { return setCount(&c.MaxConcurrentWorkflowTasks, v, 2) },
		},
		{
			"stickyCacheSize", "sticky-cache-size", auto, "workflows kept in memory between their tasks, about 64 KiB each" +
				enough + "2000",
			func(c *Config, v string) error { return setCount(&c.StickyCacheSize, v, 1) },
		},
	}
}

// deploymentSettings say which version of the workers this is.
func deploymentSettings() []setting {
	return []setting{
		{
			"deployment.build", "deployment-build", "", "version of this worker in deployment.name, such as the tag of " +
				"its image: letters, digits, \"_\", \".\" and \"-\"",
			func(c *Config, v string) error {
				return setTag(&c.Deployment.BuildID, v, tag, "1 to 63 letters, digits, \"_\", \".\" and \"-\"")
			},
		},
		{
			"deployment.name", "deployment-name", "", "Worker Deployment of Temporal that this worker belongs to, a DNS " +
				"label: it takes no work before its version is made current; no versions where it is not set",
			func(c *Config, v string) error {
				return setTag(&c.Deployment.Name, v, dnsLabel, "a DNS label, such as \"fleet\"")
			},
		},
	}
}

// sweepSettings say how often the scheduled workflows run. The worker that started last
// decides for all.
func sweepSettings() []setting {
	return []setting{
		{
			"check.interval", "check-interval", "2m", "how often every provider is checked; at least 1s",
			func(c *Config, v string) error { return setPoll(&c.Intervals.Check, v) },
		},
		{
			"drift.interval", "drift-interval", "2m", "how often running instances are compared with a listing; at least 1s",
			func(c *Config, v string) error { return setPoll(&c.Intervals.Drift, v) },
		},
		{
			"gc.interval", "gc-interval", "10m", "how often orphans are looked for; at least 1s",
			func(c *Config, v string) error { return setPoll(&c.Intervals.GC, v) },
		},
	}
}

// codecSettings say how payloads are encrypted, and who may read them.
func codecSettings() []setting {
	return []setting{
		{
			"codec.current", "codec-current", "", "key that encrypts, by its file's name; the last name where it is not set",
			func(c *Config, v string) error { c.Codec.Current = v; return nil },
		},
		{
			"codec.keys", "codec-keys", "", "directory of keys that encrypt what Temporal stores, one file a key; " +
				"nothing is encrypted where it is not set",
			func(c *Config, v string) error { c.Codec.Keys = v; return nil },
		},
		{
			"codec.origins", "codec-origins", "", "Web UIs that may use the codec endpoint from a browser, with commas between",
			func(c *Config, v string) error { return setOrigins(&c.Codec.Origins, v) },
		},
		{
			"codec.tokensFile", "codec-tokens-file", "", "file with the SHA-256 of every token for the codec endpoint; " +
				"there is no endpoint where it is not set",
			func(c *Config, v string) error { c.Codec.TokensFile = v; return nil },
		},
	}
}

// otherVariables are ours, too, but no setting of a worker.
func otherVariables() []string { return []string{EnvAPIToken, EnvDevDir, EnvUIPort} }
