package kvm

import (
	"errors"
	"regexp"
	"strconv"
	"strings"

	"github.com/digitalocean/go-libvirt"
)

// What libvirt said, as the steps of Create and Delete ask for it. Its numbers are of the
// kind of a failure, and often of many: code 55 is a domain that runs already, one that does
// not run, a network and a pool that are not active. Then the words decide.

// saidCode returns libvirt's number for an error; false when it is no error of libvirt's.
func saidCode(err error) (libvirt.ErrorNumber, string, bool) {
	said, ok := errors.AsType[libvirt.Error](err)
	return libvirt.ErrorNumber(said.Code), strings.ToLower(said.Message), ok //nolint:gosec // small numbers
}

func said(err error, code libvirt.ErrorNumber, words ...string) bool {
	got, text, ok := saidCode(err)
	if !ok || got != code {
		return false
	}
	for _, word := range words {
		if !strings.Contains(text, word) {
			return false
		}
	}
	return true
}

// noDomain is the one answer that means that a domain is gone.
func noDomain(err error) bool { return said(err, libvirt.ErrNoDomain) }

func noVolume(err error) bool { return said(err, libvirt.ErrNoStorageVol) }

func alreadyRunning(err error) bool {
	return said(err, libvirt.ErrOperationInvalid, "domain is already running")
}

func notRunning(err error) bool {
	return said(err, libvirt.ErrOperationInvalid, "domain is not running")
}

// nameTaken means that somebody else has defined the name since it was looked for.
func nameTaken(err error) bool {
	return said(err, libvirt.ErrOperationFailed, "already", "with uuid") || said(err, libvirt.ErrDomExist)
}

// volumeExists means that a volume is there although it was looked for and not found:
// another create made it, or the pool has not read its folder again.
func volumeExists(err error) bool {
	return said(err, libvirt.ErrStorageVolExist) || said(err, libvirt.ErrOperationInvalid, "already exists")
}

var flagsInText = regexp.MustCompile(`unsupported flags \((0x[0-9a-f]+)\)`)

// unknownFlags returns the flags that an older libvirt does not know; false when the error
// is about something else.
func unknownFlags(err error) (uint64, bool) {
	code, text, ok := saidCode(err)
	found := flagsInText.FindStringSubmatch(text)
	if !ok || code != libvirt.ErrInvalidArg || found == nil {
		return 0, false
	}
	flags, err := strconv.ParseUint(found[1], 0, 32)
	return flags, err == nil && flags != 0
}

// unsupported means that this libvirt, or this driver of it, has no such call.
func unsupported(err error) bool {
	return errors.Is(err, libvirt.ErrUnsupported) || said(err, libvirt.ErrNoSupport)
}

// answered reports whether the host has answered at all, with whatever error.
func answered(err error) bool {
	_, _, ok := saidCode(err)
	return ok || errors.Is(err, libvirt.ErrUnsupported)
}

// linkFailed means that the host was not heard of: the error is neither an answer of its
// libvirt nor one that was found in such an answer.
func linkFailed(err error) bool {
	_, decided := errors.AsType[*classed](err)
	return err != nil && !decided && !answered(err)
}
