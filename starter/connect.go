package main

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"os"
	"time"

	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/log"

	"github.com/egressfleet/egressfleet/internal/codec"
	"github.com/egressfleet/egressfleet/internal/config"
	"github.com/egressfleet/egressfleet/starter/fleet"
)

// Temporal is where the command line says the server is; empty fields leave it to
// the TEMPORAL_* variables, and those to 127.0.0.1 and EGRESSFLEET_TEMPORAL_PORT.
type Temporal struct{ Address, Namespace string }

// connectTimeout is how long a server that does not answer is waited for.
const connectTimeout = 10 * time.Second

// connect dials Temporal. Its error names the address and what sets it.
func connect(ctx context.Context, t Temporal) (Fleet, func(), error) {
	keys, err := keysFrom(os.Getenv)
	if err != nil {
		return nil, nil, usageError{err}
	}
	c, err := dial(ctx, t, keys)
	if err != nil {
		return nil, nil, err
	}
	return fleet.New(c, "", fleet.WithDataConverter(keys.DataConverter())), c.Close, nil
}

// keysFrom opens the keys that the worker has, too; there may be none.
func keysFrom(getenv func(string) string) (*codec.Ring, error) {
	return codec.Open(codec.Options{Dir: getenv(config.EnvCodecKeys), Current: getenv(config.EnvCodecCurrent)})
}

func dial(ctx context.Context, t Temporal, keys *codec.Ring) (client.Client, error) {
	server, err := serverOf(t)
	if err != nil {
		return nil, err
	}
	keys.Secure(&server.Options)
	server.Options.Logger = log.NewStructuredLogger(slog.New(slog.DiscardHandler))
	ctx, cancel := context.WithTimeout(ctx, connectTimeout)
	defer cancel()
	c, err := client.DialContext(ctx, server.Options)
	if err != nil {
		return nil, codedError{fmt.Errorf("temporal at %s (%s) cannot be reached; is \"make run\" running? (%w)",
			server.Options.HostPort, server.From, err), exitUnavailable}
	}
	return c, nil
}

func serverOf(t Temporal) (config.Server, error) {
	port, err := portFrom(os.Getenv, config.EnvTemporalPort, defaultTemporalPort)
	if err != nil {
		return config.Server{}, err
	}
	server, err := config.Temporal{
		Host: loopback, Port: port, Namespace: "default", APIKeyFile: os.Getenv(config.EnvTemporalKeyFile),
	}.Server(nil, slog.New(slog.DiscardHandler))
	if err != nil {
		return config.Server{}, err
	}
	if t.Address != "" {
		server.From = "from --temporal-address"
	}
	server.Options.HostPort = cmp.Or(t.Address, server.Options.HostPort)
	server.Options.Namespace = cmp.Or(t.Namespace, server.Options.Namespace)
	return server, nil
}
