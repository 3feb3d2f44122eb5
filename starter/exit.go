package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"reflect"
	"strings"

	"github.com/spf13/cobra"

	"github.com/egressfleet/egressfleet/starter/fleet"
)

// The exit codes. Scripts rely on them: never renumber one.
const (
	exitOK          = 0
	exitFailure     = 1
	exitUsage       = 2
	exitNotFound    = 3
	exitConflict    = 4
	exitUnavailable = 5
	exitTimeout     = 6
	exitInterrupted = 130 // as shells say it of SIGINT
)

// exitMeaning is an exit code and when it is returned.
type exitMeaning struct {
	Code    int
	Meaning string
}

// exitMeanings is the table of docs/cli.md.
func exitMeanings() []exitMeaning {
	return []exitMeaning{
		{exitOK, "it was done"},
		{exitFailure, "something else failed, or several things in different ways"},
		{exitUsage, "the command line itself is wrong; nothing was asked for"},
		{exitNotFound, "there is no such proxy, or it is gone"},
		{exitConflict, "the proxy that is there does not allow it"},
		{exitUnavailable, "Temporal, a worker or the API cannot be reached; trying again helps"},
		{exitTimeout, "it was asked for, and not done within --timeout"},
		{exitInterrupted, "it was interrupted; what was asked for goes on"},
	}
}

// usageError is a fault of the command line itself.
type usageError struct{ error }

func (e usageError) Unwrap() error { return e.error }

func usagef(format string, args ...any) error { return usageError{fmt.Errorf(format, args...)} }

// codedError is an error whose exit code nothing else tells.
type codedError struct {
	error
	code int
}

func (e codedError) Unwrap() error { return e.error }

func timeoutf(format string, args ...any) error {
	return codedError{fmt.Errorf(format, args...), exitTimeout}
}

// ExitCode prints an error, one line for each that is joined in it, and returns the
// exit code for it.
func ExitCode(w io.Writer, err error) int {
	if err == nil {
		return exitOK
	}
	_, _ = fmt.Fprintf(w, "starter: %v\n", err)
	return codeOf(err)
}

// codeOf is pure. Errors that are joined have a code if they all have the same one.
func codeOf(err error) int {
	joined, ok := err.(interface{ Unwrap() []error })
	if !ok || reflect.TypeOf(err) != reflect.TypeOf(errors.Join(io.EOF)) {
		return codeOfOne(err)
	}
	codes := map[int]bool{}
	for _, one := range joined.Unwrap() {
		codes[codeOf(one)] = true
	}
	for code := range codes {
		if len(codes) == 1 || code == exitUsage {
			return code
		}
	}
	return exitFailure
}

func codeOfOne(err error) int {
	if coded, ok := errors.AsType[codedError](err); ok {
		return coded.code
	}
	if _, usage := errors.AsType[usageError](err); usage {
		return exitUsage
	}
	switch {
	case errors.Is(err, context.Canceled):
		return exitInterrupted
	case errors.Is(err, fleet.ErrNotFound):
		return exitNotFound
	case errors.Is(err, fleet.ErrConflict):
		return exitConflict
	case errors.Is(err, fleet.ErrUnavailable):
		return exitUnavailable
	default:
		return exitFailure
	}
}

// exitCodesTopic is the help topic that lists them.
func (a *app) exitCodesTopic() *cobra.Command {
	var b strings.Builder
	b.WriteString("The exit codes:\n\n")
	for _, m := range exitMeanings() {
		fmt.Fprintf(&b, "  %3d  %s\n", m.Code, m.Meaning)
	}
	return &cobra.Command{Use: "exit-codes", Short: "What the exit codes mean", Long: strings.TrimSuffix(b.String(), "\n")}
}
