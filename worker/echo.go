package main

import (
	"context"
	"fmt"

	"github.com/egressfleet/egressfleet/internal/config"
	"github.com/egressfleet/egressfleet/internal/echo"
)

// listenEcho opens the port of the target for probes of this machine's proxies.
func (p *process) listenEcho(ctx context.Context) (err error) {
	if p.echo, err = echo.New(); err != nil {
		return fmt.Errorf("certificate of the echo target: %w", err)
	}
	if file := p.cfg.Echo.Certificate; file != "" {
		if err := p.echo.WriteCertificate(file); err != nil {
			return fmt.Errorf("echo.certificate (%s): %w", config.EnvEchoCertificate, err)
		}
	}
	l, err := listen(ctx, p.cfg.Echo.Listen(), "the echo target", config.EnvEchoPort)
	if err != nil {
		return err
	}
	p.addresses.Echo = l.Addr().String()
	p.onStop(p.background(ctx, "echo target", func(ctx context.Context) error {
		return p.echo.Serve(ctx, l, p.log)
	}))
	return nil
}
