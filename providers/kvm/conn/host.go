// Package conn keeps one SSH connection per host, on which libvirt's protocol is spoken. It
// knows nothing of domains and volumes. It may import the contract, go-libvirt and x/crypto/ssh.
// Start reading at Host.Do; link.go is one connection, frames.go keeps libvirt's client from
// its own traps.
package conn

import (
	"context"
	"errors"

	"github.com/digitalocean/go-libvirt"
)

// Host is the way to one host. Its methods may be called concurrently.
type Host struct {
	config Config
}

// New returns a Host that has not dialled yet.
func New(config Config, options ...Option) *Host {
	h := &Host{config: config.withDefaults()}
	for _, option := range options {
		option(h)
	}
	return h
}

// Option changes a Host that is being made.
type Option func(*Host)

// Do runs use on the connection that all callers share; it is dialled where there is none.
// When ctx ends, Do returns at once and use goes on without its caller: what use writes to
// variables of the caller must not be read after an error. Call hands a result over safely.
// A connection is dropped when nobody can use it any more: sshd is silent, or libvirt is.
// An error of the link is an *Error; libvirt's own errors and those of use are passed on.
func (h *Host) Do(_ context.Context, _ func(*libvirt.Libvirt) error) error {
	return errors.ErrUnsupported
}

// Probe is Do on a connection of its own, which is closed afterwards: it says whether the
// host can be reached from nothing, and disturbs nobody.
func (h *Host) Probe(_ context.Context, _ func(*libvirt.Libvirt) error) error {
	return errors.ErrUnsupported
}

// Close ends the connection, and every call on it with ConnectionLost. It does not wait for
// the host.
func (h *Host) Close() error { return nil }

// Doer is the part of a Host that Call needs: its Do or its Probe.
type Doer func(ctx context.Context, use func(*libvirt.Libvirt) error) error

// Call is Do with a result: conn.Call(ctx, host.Do, func(l *libvirt.Libvirt) (T, error) …).
// The result is zero where there is an error.
func Call[T any](ctx context.Context, do Doer, use func(*libvirt.Libvirt) (T, error)) (result T, err error) {
	results := make(chan T, 1)
	err = do(ctx, func(l *libvirt.Libvirt) error {
		value, err := use(l)
		if err == nil {
			results <- value
		}
		return err
	})
	if err == nil {
		result = <-results
	}
	return result, err
}
