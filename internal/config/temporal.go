package config

import (
	"cmp"
	"fmt"
	"log/slog"

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
// file say, and where they are silent, as t says. What is named by its file, the
// client's certificate and the API key, is followed; log is told of a file that cannot
// be used. A nil environment is the process's own. The error never holds a credential.
func (t Temporal) Server(environment envconfig.EnvLookup, log *slog.Logger) (Server, error) {
	profile, err := envconfig.LoadClientConfigProfile(envconfig.LoadClientConfigProfileOptions{EnvLookup: environment})
	if err != nil {
		return Server{}, fmt.Errorf("the TEMPORAL_* variables or their profile file: %w", err)
	}
	options, err := profile.ToClientOptions(envconfig.ToClientOptionsRequest{})
	if err != nil {
		return Server{}, fmt.Errorf("the TEMPORAL_* variables or their profile file: %w", err)
	}
	from := "from TEMPORAL_ADDRESS or the profile file"
	if options.HostPort == "" {
		from = "from temporal.host and temporal.port, " + EnvTemporalPort + "; TEMPORAL_ADDRESS is not set"
	}
	options.HostPort = cmp.Or(options.HostPort, t.Address())
	options.Namespace = cmp.Or(options.Namespace, t.Namespace)
	if err := t.follow(&options, profile, log); err != nil {
		return Server{}, err
	}
	return Server{Options: options, From: from}, nil
}
