// Package config is what a worker is told at its start: typed settings from a YAML
// file, EGRESSFLEET_* variables and flags, each stronger than the one before. It
// imports libraries only. Start reading at settings, the one list of keys; Load
// turns it into a Config.
package config

import (
	"fmt"
	"log/slog"
	"net"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Role is a part that a worker process plays.
type Role string

// The roles. A process may play several, but not worker and outside.
const (
	RoleWorker Role = "worker" // runs workflows and activities; needs providers
	RoleAPI    Role = "api"    // serves HTTP
	// RoleOutside is the second prober: it runs where no client of the proxies is, asks
	// them as a stranger would, and needs no providers.
	RoleOutside Role = "outside"
)

// Config is everything that a worker is told at its start. It holds no secret:
// credentials of Temporal stay with ClientOptions, those of a backend in files.
type Config struct {
	Installation string // DNS label; one per Temporal namespace
	Roles        []Role // sorted, at least one
	Temporal     Temporal
	API          API
	Metrics      Listen
	Echo         Echo
	Health       Health
	Feedback     Feedback
	// ProvidersFile lists the providers; set whenever RoleWorker is played.
	ProvidersFile string
	SecretsDir    string // one directory a secret, one file a key; may be empty
	Codec         Codec
	Log           Log
	// MaxConcurrentActivities bounds the provider calls of this process,
	// MaxConcurrentWorkflowTasks the workflow tasks, and StickyCacheSize is how many
	// workflows stay in memory between theirs. 0 is as many as the memory is enough for.
	MaxConcurrentActivities    int
	MaxConcurrentWorkflowTasks int
	StickyCacheSize            int
	Deployment                 Deployment
	// SteadyPoll is how often a proxy itself looks at its running instance: how soon a
	// loss is seen that the drift sweep does not notice.
	SteadyPoll time.Duration
	Intervals  Intervals
	// Warnings tell of variables that look like ours and are not; for the log.
	Warnings []string
}

// Deployment names the version of a worker for Temporal's Worker Deployments; the zero
// value is a worker without one.
type Deployment struct{ Name, BuildID string }

// validate returns nil, or what is set without what it needs.
func (d Deployment) validate() error {
	switch {
	case d.Name == "" && d.BuildID != "":
		return fmt.Errorf("deployment.build: %q needs deployment.name", d.BuildID)
	case d.Name != "" && d.BuildID == "":
		return fmt.Errorf("deployment.name: %q needs deployment.build", d.Name)
	default:
		return nil
	}
}

// Intervals are how often the scheduled workflows run.
type Intervals struct{ GC, Drift, Check time.Duration }

// Temporal is where the server is when the TEMPORAL_* variables and the profile
// file name no address.
type Temporal struct {
	Host      string
	Port      int
	Namespace string
	// APIKeyFile holds the API key, one line; empty: TEMPORAL_API_KEY has it, or nobody.
	APIKeyFile string
	// UI is the address of the Web UI, without a slash at its end; empty: unknown.
	UI string
}

// Address returns host:port, an IPv6 host in brackets.
func (t Temporal) Address() string { return net.JoinHostPort(t.Host, strconv.Itoa(t.Port)) }

// Health says what proxies are asked for.
type Health struct {
	// Target is host or host:port, for the proxies of every provider but local; empty:
	// nobody's site is asked.
	Target string
}

// Codec says how payloads are encrypted, and who may have them decrypted.
type Codec struct {
	// Keys is a directory with one file for each key; empty: nothing is encrypted.
	Keys string
	// Current is the key that encrypts; empty: the last name in byte order.
	Current string
	// TokensFile holds the SHA-256 of every token for the endpoint; empty: no endpoint.
	TokensFile string
	// Origins are the Web UIs that may use the endpoint from a browser.
	Origins []string
}

// validate returns nil, or what is set without what it needs.
func (c Codec) validate() error {
	switch {
	case c.Keys == "" && c.Current != "":
		return fmt.Errorf("codec.current: %q needs codec.keys (%s)", c.Current, EnvCodecKeys)
	case c.Keys == "" && c.TokensFile != "":
		return fmt.Errorf("codec.tokensFile: %q needs codec.keys (%s)", c.TokensFile, EnvCodecKeys)
	case c.TokensFile == "" && len(c.Origins) > 0:
		return fmt.Errorf("codec.origins: %q needs codec.tokensFile", strings.Join(c.Origins, ","))
	default:
		return nil
	}
}

// API is where the API is served, to whom and how.
type API struct {
	Listen
	// TokensFile lists the tokens and what each may do; empty: none is asked for.
	TokensFile string
	TLS        TLS
}

// TLS is what the API proves itself with; the zero value is plain HTTP.
type TLS struct{ Certificate, Key string }

// validate returns nil, or what would let everybody in, or nobody.
func (a API) validate() error {
	switch {
	case a.TLS.Certificate == "" && a.TLS.Key != "":
		return fmt.Errorf("api.tls.key: %q needs api.tls.certificate", a.TLS.Key)
	case a.TLS.Certificate != "" && a.TLS.Key == "":
		return fmt.Errorf("api.tls.certificate: %q needs api.tls.key", a.TLS.Certificate)
	case a.TokensFile == "" && !loopback(a.Host):
		return fmt.Errorf("api.host: %q can be reached from elsewhere, and needs api.tokensFile: without tokens "+
			"whoever reaches the API may do everything", a.Host)
	default:
		return nil
	}
}

// loopback reports whether only this machine reaches a host.
func loopback(host string) bool {
	ip := net.ParseIP(host)
	return host == "localhost" || ip != nil && ip.IsLoopback()
}

// Listen is an address to serve on. Port 0 takes any free one.
type Listen struct {
	Host string
	Port int
}

// Address returns host:port, an IPv6 host in brackets.
func (l Listen) Address() string { return net.JoinHostPort(l.Host, strconv.Itoa(l.Port)) }

// Echo is the TLS target that the role api serves for probes of local proxies. It asks
// for no token, so it is on loopback only.
type Echo struct {
	Port int // 0 takes any free one
	// Certificate is the file by which a worker in another process knows it; may be empty.
	Certificate string
}

// Listen returns where it is served.
func (e Echo) Listen() Listen { return Listen{Host: "127.0.0.1", Port: e.Port} }

// Log says what is logged, and in which form.
type Log struct {
	Level  slog.Level
	Format string // one of the Format constants
}

// The forms of a log line.
const (
	FormatText = "text"
	FormatJSON = "json"
)

// Plays reports whether the process has a role.
func (c Config) Plays(r Role) bool { return slices.Contains(c.Roles, r) }

// RoleNames returns the roles as one text: "api,worker".
func (c Config) RoleNames() string {
	names := make([]string, len(c.Roles))
	for i, r := range c.Roles {
		names[i] = string(r)
	}
	return strings.Join(names, ",")
}

// String is for a log line: what the process is and where it serves.
func (c Config) String() string {
	return fmt.Sprintf("installation=%s roles=%s temporal=%s/%s api=%s metrics=%s providersFile=%s",
		c.Installation, c.RoleNames(), c.Temporal.Address(), c.Temporal.Namespace,
		c.API.Address(), c.Metrics.Address(), c.ProvidersFile)
}
