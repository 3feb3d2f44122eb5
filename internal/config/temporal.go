package config

import (
	"cmp"
	"fmt"

	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/contrib/envconfig"
)

// Server is how to reach Temporal, and who said so.
type Server struct {
	Options client.Options // address, namespace, TLS and credentials
	// From says where the address comes from, in words for an error.
	From string
}

// Server returns how to reach Temporal: as the TEMPORAL_* variables and the profile
// file say, and where they are silent, as t says. A nil environment is the
// process's own. The error never holds a credential.
func (t Temporal) Server(environment envconfig.EnvLookup) (Server, error) {
	options, err := envconfig.LoadClientOptions(envconfig.LoadClientOptionsRequest{EnvLookup: environment})
	if err != nil {
		return Server{}, fmt.Errorf("the TEMPORAL_* variables or their profile file: %w", err)
	}
	from := "from TEMPORAL_ADDRESS or the profile file"
	if options.HostPort == "" {
		from = "from temporal.host and temporal.port, " + EnvTemporalPort + "; TEMPORAL_ADDRESS is not set"
	}
	options.HostPort = cmp.Or(options.HostPort, t.Address())
	options.Namespace = cmp.Or(options.Namespace, t.Namespace)
	return Server{Options: options, From: from}, nil
}
