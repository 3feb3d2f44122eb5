package devserver

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"time"

	"go.temporal.io/sdk/client"

	"github.com/egressfleet/egressfleet/testsuite/ports"
)

// lookEvery is between two looks at a server that is coming up.
const lookEvery = 100 * time.Millisecond

// Process is a development server on a database file, which outlives it: it can be
// ended in any way, and started again.
type Process struct {
	Address string // host:port, the same at every start
	cli     string
	file    string
	more    []string
	cmd     *exec.Cmd
}

// NewProcess returns a server on that database file and a free port of 127.0.0.1. It
// is not started. more are further arguments of `temporal server start-dev`.
func NewProcess(file string, more ...string) (*Process, error) {
	cli, err := CLI()
	if err != nil {
		return nil, err
	}
	port, err := ports.Take()
	if err != nil {
		return nil, err
	}
	return &Process{Address: address(port), cli: cli, file: file, more: more}, nil
}

// Start runs the server until it answers. The caller ends it.
func (p *Process) Start(ctx context.Context) error {
	host, port, err := net.SplitHostPort(p.Address)
	if err != nil {
		return err
	}
	args := append([]string{
		"server", "start-dev", "--headless", "--ip", host, "--port", port, "--log-level", "error",
		"--db-filename", p.file, "--sqlite-pragma", "journal_mode=WAL", "--sqlite-pragma", "synchronous=NORMAL",
	}, append(attributes(), p.more...)...)
	p.cmd = exec.Command(p.cli, args...) //nolint:noctx,gosec // it outlives the call, and is our own
	if err := p.cmd.Start(); err != nil {
		return err
	}
	if err := p.await(ctx); err != nil {
		return errors.Join(err, p.End(os.Kill))
	}
	return nil
}

// PID is the process, once it is started.
func (p *Process) PID() int { return p.cmd.Process.Pid }

// End sends the server a signal and waits until it has ended.
func (p *Process) End(s os.Signal) error {
	if err := p.cmd.Process.Signal(s); err != nil {
		return err
	}
	_ = p.cmd.Wait() // how it ended is of no interest
	return nil
}

func (p *Process) await(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, ready)
	defer cancel()
	for {
		c, err := client.DialContext(ctx, client.Options{HostPort: p.Address, Logger: Quiet()})
		if err == nil {
			c.Close()
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("waiting for %s on %s: %w", p.cli, p.Address, err)
		case <-time.After(lookEvery):
		}
	}
}
