package local

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"syscall"

	"github.com/egressfleet/egressfleet/providers"
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

func notFound(format string, args ...any) error {
	return &classed{providers.ErrNotFound, fmt.Errorf(format, args...)}
}

func transient(format string, args ...any) error {
	return &classed{providers.ErrTransient, fmt.Errorf(format, args...)}
}

// exhausted are the answers of a machine that has no more of something: it may
// have again, but not within seconds.
var exhausted = []syscall.Errno{
	syscall.ENOSPC, syscall.EDQUOT, // disk
	syscall.EMFILE, syscall.ENFILE, // descriptors
	syscall.ENOMEM, syscall.ENOBUFS, // memory
	syscall.EAGAIN, // processes: fork past RLIMIT_NPROC
}

// refused are the answers that no waiting changes.
var refused = []syscall.Errno{
	syscall.ENOEXEC,                 // the executable is not one
	syscall.ENOTSUP, syscall.ENOLCK, // dir is on a file system without locks
}

// classify gives every error its class; what is unknown is Transient. A missing
// file is Transient too: only the place that knows which file it is may call it
// NotFound, or an unmounted disk would read as "all gone". Contract §5.
func classify(err error) providers.Class {
	if c, ok := errors.AsType[*classed](err); ok {
		return c.class
	}
	if errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		return providers.ErrTransient
	}
	if e, ok := errors.AsType[syscall.Errno](err); ok {
		return classifyErrno(e)
	}
	return providers.ErrTransient
}

func classifyErrno(e syscall.Errno) providers.Class {
	for _, x := range exhausted {
		if e == x {
			return providers.ErrQuotaExceeded
		}
	}
	for _, r := range refused {
		if e == r {
			return providers.ErrPermanent
		}
	}
	return providers.ErrTransient
}

// missing reports whether a path does not exist. Without permission, or with a
// file in the place of a folder, that cannot be told, and the answer is no.
func missing(err error) bool { return errors.Is(err, fs.ErrNotExist) }
