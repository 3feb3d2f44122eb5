package kvm

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/digitalocean/go-libvirt"

	"github.com/egressfleet/egressfleet/providers"
	"github.com/egressfleet/egressfleet/providers/kvm/conn"
)

// classed is an error whose class was decided where it arose.
type classed struct {
	class providers.Class
	err   error
}

func (c *classed) Error() string { return c.err.Error() }
func (c *classed) Unwrap() error { return c.err }

func permanent(format string, args ...any) error {
	return &classed{providers.ErrPermanent, fmt.Errorf(format, args...)}
}

func quota(format string, args ...any) error {
	return &classed{providers.ErrQuotaExceeded, fmt.Errorf(format, args...)}
}

func transient(format string, args ...any) error {
	return &classed{providers.ErrTransient, fmt.Errorf(format, args...)}
}

// classify gives every error its class; what is unknown is Transient. Only Get may say that
// an instance is gone. Contract §5.
func classify(op string, err error) providers.Class {
	if c, ok := errors.AsType[*classed](err); ok {
		return c.class
	}
	if class, ok := classOfImage(err); ok {
		return class
	}
	if link, ok := errors.AsType[*conn.Error](err); ok {
		if link.Permanent() {
			return providers.ErrPermanent
		}
		return providers.ErrTransient
	}
	if errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		return providers.ErrTransient
	}
	if errors.Is(err, libvirt.ErrUnsupported) { // a libvirt that is too old for the call
		return providers.ErrPermanent
	}
	code, text, ok := saidCode(err)
	switch {
	case !ok:
		return providers.ErrTransient // no error of libvirt's: the link broke
	case code == libvirt.ErrNoDomain && op == providers.OpGet:
		return providers.ErrNotFound
	}
	return classifyAnswer(code, text)
}

func classifyAnswer(code libvirt.ErrorNumber, text string) providers.Class {
	switch {
	case code == libvirt.ErrNoMemory, speaksOf(text, exhausted):
		return providers.ErrQuotaExceeded
	case slices.Contains(refusals, code):
		return providers.ErrPermanent
	case slices.Contains(catchAlls, code) && speaksOf(text, misconfigured):
		return providers.ErrPermanent
	}
	return providers.ErrTransient
}

func speaksOf(text string, words []string) bool {
	return slices.ContainsFunc(words, func(word string) bool { return strings.Contains(text, word) })
}

// exhausted are the words about a host that has no more of something, under whichever number:
// QEMU's own come as an internal error, the kernel's as a system error.
var exhausted = []string{
	"no space left on device", "disk quota exceeded", "cannot allocate memory", "out of memory",
	"not enough free space", "insufficient free space", "insufficient free extents", "not enough memory",
	"too many open files", "resource temporarily unavailable: fork",
}

// refusals are the numbers that no waiting changes: a right is missing, or what is asked for
// is not there, not valid or not possible on that host.
var refusals = []libvirt.ErrorNumber{
	libvirt.ErrNoSupport, libvirt.ErrNoConnect, libvirt.ErrInvalidArg, libvirt.ErrOsType,
	libvirt.ErrXMLError, libvirt.ErrXMLDetail, libvirt.ErrXMLInvalidSchema, libvirt.ErrParseFailed,
	libvirt.ErrConfSyntax, libvirt.ErrConfigUnsupported, libvirt.ErrArgumentUnsupported,
	libvirt.ErrOperationUnsupported, libvirt.ErrCPUIncompatible, libvirt.ErrNoSecurityModel,
	libvirt.ErrOperationDenied, libvirt.ErrAccessDenied,
	libvirt.ErrAuthFailed, libvirt.ErrAuthCancelled, libvirt.ErrAuthUnavailable,
	libvirt.ErrNoStoragePool, libvirt.ErrNoNetwork, libvirt.ErrInvalidMac, libvirt.ErrNoInterface,
	libvirt.ErrNoNwfilter, libvirt.ErrNoSecret, libvirt.ErrNoNodeDevice,
}

// catchAlls are the numbers under which anything can come.
var catchAlls = []libvirt.ErrorNumber{
	libvirt.ErrInternalError, libvirt.ErrSystemError, libvirt.ErrOperationFailed, libvirt.ErrRPC,
}

// misconfigured are the words, under such a number, about what a person has to mend: on the
// host, or in the configuration. "Permission denied" and a disk that is not there are not
// among them: they are mended on the host, or by the next Create.
var misconfigured = []string{
	"authentication required", "authentication failed", // a socket that asks for SASL
	"cannot check qemu binary", "cannot find qemu binary", // no emulator
	"could not access kvm kernel module", "kvm is not supported", "failed to initialize kvm",
	"inaccessible backing store", // the image's volume is not where the overlay was told
	"no such device",             // a bridge that is not there
	"cannot get interface mtu", "unable to add bridge", "failed to find a suitable",
	"with uuid", // the name or the UUID of another domain
	"unsupported machine type", "does not support machine type",
}
