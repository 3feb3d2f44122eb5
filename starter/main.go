// Command starter is the operator's command line: it starts, asks and ends proxies,
// and runs the whole fleet on one machine for development. It may import everything;
// what it does to workflows goes through starter/fleet. Start reading at NewCommand;
// files called dev_… belong to the dev command.
package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/egressfleet/egressfleet/starter/terminal"
)

func main() { os.Exit(realMain()) }

// realMain returns the exit code, so that deferred calls run before the end.
func realMain() int {
	signals := []os.Signal{os.Interrupt, syscall.SIGTERM}
	if !signal.Ignored(syscall.SIGHUP) { // as it is under nohup
		signals = append(signals, syscall.SIGHUP)
	}
	ctx, stop := signal.NotifyContext(context.Background(), signals...)
	defer stop()
	cmd := NewCommand(Streams{
		In: os.Stdin, Out: os.Stdout, Err: os.Stderr,
		OutScreen: func() terminal.Screen { return terminal.Of(os.Stdout, os.Getenv) },
		ErrScreen: func() terminal.Screen { return terminal.Of(os.Stderr, os.Getenv) },
	}, Outside{Connect: connect, Now: time.Now, Every: every, After: time.After})
	return ExitCode(os.Stderr, cmd.ExecuteContext(ctx))
}

// every ticks until its second result is called.
func every(d time.Duration) (<-chan time.Time, func()) {
	t := time.NewTicker(d)
	return t.C, t.Stop
}
