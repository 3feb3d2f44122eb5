package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"syscall"

	"github.com/egressfleet/egressfleet/internal/config"
)

// listen opens a port. Its error names the port, what it is for and the variable
// that moves it.
func listen(ctx context.Context, at config.Listen, what, variable string) (net.Listener, error) {
	l, err := (&net.ListenConfig{}).Listen(ctx, "tcp", at.Address())
	switch {
	case errors.Is(err, syscall.EADDRINUSE):
		return nil, fmt.Errorf("port %d for %s is in use on %s: stop what uses it, or set %s to another port",
			at.Port, what, at.Host, variable)
	case err != nil:
		return nil, fmt.Errorf("%s cannot listen on %s (%s): %w", what, at.Address(), variable, err)
	default:
		return l, nil
	}
}
