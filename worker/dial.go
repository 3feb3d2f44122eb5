package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"go.temporal.io/api/serviceerror"
	"go.temporal.io/sdk/client"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/egressfleet/egressfleet/internal/config"
)

const (
	// dialPatience is how long a worker waits for a server that is not there yet;
	// whoever started the worker starts it again after that.
	dialPatience = time.Minute
	// dialPause is between two attempts; an attempt itself may take 5 s.
	dialPause = 2 * time.Second
)

// dial connects to Temporal. It tries again for as long as patience, unless the
// server answers and refuses.
func dial(
	ctx context.Context, server config.Server, patience time.Duration, log *slog.Logger,
) (client.Client, error) {
	within, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	for {
		c, err := client.DialContext(within, server.Options)
		if err == nil {
			return c, nil
		}
		if refused(err) {
			return nil, fmt.Errorf("temporal at %s (%s) refuses this worker: %w", server.Options.HostPort, server.From, err)
		}
		log.Warn("temporal cannot be reached yet", slog.String("address", server.Options.HostPort),
			slog.String("error", err.Error()), slog.Duration("retryIn", dialPause))
		select {
		case <-within.Done():
			return nil, fmt.Errorf("temporal at %s (%s) cannot be reached within %s: %w",
				server.Options.HostPort, server.From, patience, err)
		case <-time.After(dialPause):
		}
	}
}

// refused reports whether the server is there and wants nothing of us.
func refused(err error) bool {
	if _, denied := errors.AsType[*serviceerror.PermissionDenied](err); denied {
		return true
	}
	return status.Code(err) == codes.Unauthenticated
}
