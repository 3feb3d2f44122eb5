package local

import (
	"context"
	"errors"
	"net/netip"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"golang.org/x/sys/unix"

	"github.com/egressfleet/egressfleet/providers"
)

// ReasonExecutableMissing is this provider's own: the program that an instance
// would run is not there, or cannot be run.
const ReasonExecutableMissing = "ExecutableMissing"

// checkTime bounds a check on a disk that does not answer.
const checkTime = 5 * time.Second

// Check tells whether an instance could be created right now. The one target is
// the folder of all instances.
func (p *Provider) Check(ctx context.Context) []providers.TargetStatus {
	ctx, cancel := context.WithTimeout(ctx, checkTime)
	defer cancel()
	result := make(chan providers.TargetStatus, 1)
	go func() { result <- p.check(ctx) }() // a hung disk keeps this goroutine, not the caller
	select {
	case status := <-result:
		return []providers.TargetStatus{status}
	case <-ctx.Done():
		return []providers.TargetStatus{p.status(ctx.Err())}
	}
}

func (p *Provider) check(ctx context.Context) providers.TargetStatus {
	if err := ctx.Err(); err != nil {
		return p.status(err)
	}
	there, err := p.store.present()
	if err != nil {
		return p.status(err)
	}
	if err := writable(p.store.root); err != nil {
		return p.status(err)
	}
	if err := checkExecutable(p.executable); err != nil {
		return providers.TargetStatus{
			Target: p.store.root, Reason: ReasonExecutableMissing, Message: err.Error(),
		}
	}
	status := p.status(nil)
	if status.Details, err = p.details(ctx, there); err != nil {
		return p.status(err)
	}
	return status
}

func (p *Provider) status(err error) providers.TargetStatus {
	s := providers.TargetStatus{Target: p.store.root, Ready: err == nil, Reason: providers.ReasonReachable}
	if err == nil {
		return s
	}
	s.Message = err.Error()
	switch {
	case errors.Is(err, context.DeadlineExceeded), errors.Is(err, context.Canceled):
		s.Reason = providers.ReasonTimeout
	case errors.Is(err, os.ErrPermission), errors.Is(err, unix.EROFS):
		s.Reason = providers.ReasonForbidden
	default:
		s.Reason = providers.ReasonUnreachable
	}
	return s
}

// writable asks without writing: a check leaves no trace. Before the first Create
// the question is about the folder that root would be made in.
func writable(root string) error {
	for path := root; ; path = filepath.Dir(path) {
		err := unix.Access(path, unix.W_OK|unix.X_OK)
		if err == nil {
			return nil
		}
		if !missing(err) || path == filepath.Dir(path) {
			return &os.PathError{Op: "write", Path: path, Err: err}
		}
	}
}

// details tells how much is there and how much more there can be.
func (p *Provider) details(ctx context.Context, there bool) (map[string]string, error) {
	details := map[string]string{
		"addressRange": p.addresses.prefix.String(),
		"instances":    "0",
	}
	used := 0
	if there {
		taken, err := p.taken(ctx, "")
		if err != nil {
			return nil, err
		}
		used = len(taken)
		details["instances"] = strconv.Itoa(sum(taken))
	}
	if p.addresses.single() {
		details["mode"] = "one address, one instance per port"
	} else {
		details["mode"] = "one address per instance"
		details["freeAddresses"] = strconv.Itoa(max(0, p.addresses.capacity()-used))
	}
	return details, nil
}

func sum(claims map[netip.AddrPort]int) int {
	total := 0
	for _, n := range claims {
		total += n
	}
	return total
}
