package kvm

import (
	"context"
	"errors"
	"fmt"
	"strconv"

	"github.com/digitalocean/go-libvirt"
	"github.com/google/uuid"

	"github.com/egressfleet/egressfleet/providers"
	"github.com/egressfleet/egressfleet/providers/kvm/conn"
)

// The reasons of a check besides those of all providers and those of the connection
// (conn.Reason): each is about something else on the host.
const (
	ReasonPoolNotFound          = "PoolNotFound"
	ReasonPoolInactive          = "PoolInactive"
	ReasonPoolFull              = "PoolFull"
	ReasonMemoryFull            = "MemoryFull"
	ReasonNetworkNotFound       = "NetworkNotFound"
	ReasonNetworkInactive       = "NetworkInactive"
	ReasonReadOnly              = "ReadOnly"
	ReasonDomainTypeUnsupported = "DomainTypeUnsupported"
)

// fault is what a check found wrong.
type fault struct {
	reason string
	err    error
}

func (f *fault) Error() string { return f.err.Error() }
func (f *fault) Unwrap() error { return f.err }

// Check asks every host at the same time, each on a connection of its own, whether an
// instance could be made there now.
func (p *Provider) Check(ctx context.Context) []providers.TargetStatus {
	statuses, _ := each(p.hosts, func(h *host) (providers.TargetStatus, error) { return p.checkHost(ctx, h), nil })
	return statuses
}

func (p *Provider) checkHost(ctx context.Context, h *host) providers.TargetStatus {
	ctx, cancel := context.WithTimeoutCause(ctx, p.bounds.check, fmt.Errorf("no answer within %s", p.bounds.check))
	defer cancel()
	details, err := p.probe(ctx, h)
	s := providers.TargetStatus{
		Target: h.Name, Ready: err == nil, Reason: providers.ReasonReachable, Details: details,
	}
	if h.Retired {
		details["retired"] = "true"
	}
	if err != nil {
		s.Reason, s.Message = checkReason(err), err.Error()
	}
	return s
}

// checkReason is the reason of a failed check. The link says how far it came.
func checkReason(err error) string {
	if f, ok := errors.AsType[*fault](err); ok {
		return f.reason
	}
	if link, ok := errors.AsType[*conn.Error](err); ok {
		return linkReason(link)
	}
	if errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		return providers.ReasonTimeout
	}
	switch code, _, ok := saidCode(err); {
	case !ok:
		return providers.ReasonUnreachable
	case code == libvirt.ErrAccessDenied, code == libvirt.ErrOperationDenied:
		return providers.ReasonForbidden
	case code == libvirt.ErrAuthFailed, code == libvirt.ErrAuthCancelled, code == libvirt.ErrAuthUnavailable:
		return providers.ReasonUnauthorized
	default:
		return providers.ReasonAPIError
	}
}

func linkReason(link *conn.Error) string {
	switch link.Reason {
	case conn.Canceled:
		return providers.ReasonTimeout
	default:
		return string(link.Reason)
	}
}

// probe goes through all that a create needs, on one connection of its own. What it finds out
// before something fails is told, too.
func (p *Provider) probe(ctx context.Context, h *host) (map[string]string, error) {
	details := map[string]string{}
	type outcome struct {
		details map[string]string
		err     error
	}
	outcomes := make(chan outcome, 1)
	err := h.link.Probe(ctx, func(a api) error {
		// The calls of a probe share its connection, so they are made inside of it.
		c := p.calling(ctx, h, func(_ context.Context, use func(api) error) error { return use(a) })
		found := map[string]string{}
		err := p.inspect(c, h, found)
		outcomes <- outcome{found, err}
		return err
	})
	select {
	case o := <-outcomes:
		return o.details, o.err
	default:
		return details, err
	}
}

// inspect asks one thing after the other.
func (p *Provider) inspect(c calls, h *host, details map[string]string) error {
	if err := versions(c, details); err != nil {
		return err
	}
	if err := mayWrite(c); err != nil {
		return err
	}
	if err := p.canRun(c); err != nil {
		return err
	}
	if err := checkNetwork(c, h); err != nil {
		return err
	}
	return p.checkRoom(c, h, details)
}

func versions(c calls, details map[string]string) error {
	library, err := c.ConnectGetLibVersion()
	if err != nil {
		return err
	}
	details["libvirt"] = version(library)
	hypervisor, err := c.ConnectGetVersion()
	if err == nil {
		details["hypervisor"] = version(hypervisor)
	}
	return err
}

// version writes 9000000 as 9.0.0.
func version(v uint64) string {
	const major, minor = 1_000_000, 1_000
	return fmt.Sprintf("%d.%d.%d", v/major, v%major/minor, v%minor)
}

// mayWrite asks for a change of a domain that there cannot be. A socket for readers lets
// everything but the first change pass, and that would be a create.
func mayWrite(c calls) error {
	nobody := libvirt.Domain{Name: "egressfleet-check", UUID: libvirt.UUID(uuid.New()), ID: -1}
	err := c.DomainSetMetadata(nobody, int32(libvirt.DomainMetadataDescription), libvirt.OptString{"check"}, nil, nil,
		libvirt.DomainAffectConfig)
	switch {
	case said(err, libvirt.ErrOperationDenied):
		return &fault{ReasonReadOnly, fmt.Errorf("the socket is for readers only: %w", err)}
	case linkFailed(err), said(err, libvirt.ErrAccessDenied):
		return err
	default:
		return nil // there is no such domain, as it should be
	}
}

// canRun asks whether the host can run the configured type of domain. A driver that cannot
// tell is taken at its word when it starts one.
func (p *Provider) canRun(c calls) error {
	_, err := c.ConnectGetDomainCapabilities(nil, nil, nil, libvirt.OptString{p.settings.domainType}, 0)
	switch {
	case linkFailed(err):
		return err
	case err == nil || unsupported(err):
		return nil
	default:
		return &fault{
			ReasonDomainTypeUnsupported, fmt.Errorf("domainType %q does not run here: %w", p.settings.domainType, err),
		}
	}
}

func checkNetwork(c calls, h *host) error {
	if h.Network == "" {
		return nil // libvirt knows nothing of a bridge before a domain is started on it
	}
	network, err := c.NetworkLookupByName(h.Network)
	if said(err, libvirt.ErrNoNetwork) {
		return &fault{ReasonNetworkNotFound, err}
	}
	if err != nil {
		return err
	}
	active, err := c.NetworkIsActive(network)
	if err == nil && active == 0 {
		return &fault{ReasonNetworkInactive, fmt.Errorf("network %q is not active: virsh net-start %s", h.Network, h.Network)}
	}
	return err
}

// checkRoom tells how much is left, and whether that is enough for the smallest guest.
func (p *Provider) checkRoom(c calls, h *host, details map[string]string) error {
	pool, err := c.StoragePoolLookupByName(h.Pool)
	if said(err, libvirt.ErrNoStoragePool) {
		return &fault{ReasonPoolNotFound, err}
	}
	if err != nil {
		return err
	}
	state, _, _, _, err := c.StoragePoolGetInfo(pool)
	if err != nil {
		return err
	}
	if state == uint8(libvirt.StoragePoolInactive) {
		return &fault{ReasonPoolInactive, fmt.Errorf("pool %q is not active: virsh pool-start %s", h.Pool, h.Pool)}
	}
	r, err := measure(c, h.Pool)
	if err != nil {
		return err
	}
	for key, bytes := range map[string]uint64{
		"memoryAvailableMiB": r.memory, "memoryTotalMiB": r.memoryTotal, "poolFreeMiB": r.pool, "poolTotalMiB": r.poolTotal,
	} {
		details[key] = strconv.FormatUint(bytes>>20, 10) //nolint:mnd // MiB
	}
	return p.full(h, r)
}

func (p *Provider) full(h *host, r room) error {
	var why error
	for _, m := range p.settings.machines {
		err := p.settings.holds(h.Name, r, m)
		if err == nil {
			return nil
		}
		why = err
	}
	if r.pool < p.settings.poolReserve {
		return &fault{ReasonPoolFull, why}
	}
	return &fault{ReasonMemoryFull, why}
}
