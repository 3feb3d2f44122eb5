// Package temporalserver configures the Temporal server that tools/temporal-server builds,
// for suites that want what production has in the place of the development server. Start
// reading at Config; alone.go is one server with all that it needs.
package temporalserver

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"text/template"
)

// Config is what tells one server from another. Each has all four services.
type Config struct {
	Host string // where all of them listen
	// First is the host of the server that began the cluster. Each server writes its address
	// into the record of the cluster where it differs, so that it is the same for all.
	First  string
	Shards int
	Ports  Ports
	// Main and Visibility are the stores, as YAML in braces.
	Main, Visibility string
}

// Ports are those of the services frontend, matching, history and worker.
type Ports struct{ RPC, Membership [4]int }

// Usual are the ports of Temporal's own examples.
func Usual() Ports {
	return Ports{RPC: [4]int{7233, 7235, 7234, 7239}, Membership: [4]int{6933, 6935, 6934, 6939}}
}

const text = `log: {stdout: true, level: warn}
persistence:
  defaultStore: default
  visibilityStore: visibility
  numHistoryShards: {{.Shards}}
  datastores:
    default: {sql: {{.Main}}}
    visibility: {sql: {{.Visibility}}}
global:
  membership: {maxJoinDuration: 30s, broadcastAddress: {{.Host}}}
services:
{{- range $n, $name := names}}
  {{$name}}:
    rpc: {grpcPort: {{index $.Ports.RPC $n}}, membershipPort: {{index $.Ports.Membership $n}}, bindOnIP: {{$.Host}}}
{{- end}}
clusterMetadata:
  enableGlobalNamespace: false
  failoverVersionIncrement: 10
  masterClusterName: active
  currentClusterName: active
  clusterInformation:
    active:
      {enabled: true, initialFailoverVersion: 1, rpcName: frontend, rpcAddress: "{{.First}}:{{index .Ports.RPC 0}}"}
dcRedirectionPolicy: {policy: noop}
`

func names() []string { return []string{"frontend", "matching", "history", "worker"} }

var page = template.Must(template.New("").Funcs(template.FuncMap{"names": names}).Parse(text))

// Write writes the configuration into a folder below dir, and returns the arguments that
// start a server with it.
func (c Config) Write(dir, name string) (args []string, err error) {
	var out strings.Builder
	if err := page.Execute(&out, c); err != nil {
		return nil, err
	}
	const environment = "production"
	folder := filepath.Join(dir, name)
	err = errors.Join(os.MkdirAll(folder, 0o700),
		os.WriteFile(filepath.Join(folder, environment+".yaml"), []byte(out.String()), 0o600))
	return []string{"--root", dir, "--config", name, "--env", environment, "--allow-no-auth", "start"}, err
}
