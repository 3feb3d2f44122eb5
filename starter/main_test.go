package main

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/signal"
	"syscall"
	"testing"
	"time"

	"github.com/egressfleet/egressfleet/providers/local"
)

// playVar makes the test binary a process that a test starts: what it plays.
const playVar = "EGRESSFLEET_TEST_PLAY"

// What the test binary can play.
const (
	playDead   = "dead"   // writes two lines and ends with code 3
	playPolite = "polite" // ends on SIGTERM
	playDeaf   = "deaf"   // does not
	playFleet  = "fleet"  // is the command line over the fleet of these tests
	playParent = "parent" // starts a polite child and waits
)

// The test binary is an instance of the local provider as well, as the worker is.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == local.Command {
		os.Exit(local.Main(os.Args[2:]))
	}
	if role := os.Getenv(playVar); role != "" {
		os.Exit(play(role))
	}
	os.Exit(m.Run())
}

// play says "up" when it can be signalled.
func play(role string) int {
	if role == playFleet {
		cmd := NewCommand(Streams{In: os.Stdin, Out: os.Stdout, Err: os.Stderr}, Outside{
			Connect: func(context.Context, Temporal) (Fleet, func(), error) { return fleetOfThree(), func() {}, nil },
			Now:     func() time.Time { return noon }, Every: never, After: time.After,
		})
		return ExitCode(os.Stderr, cmd.ExecuteContext(context.Background()))
	}
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, syscall.SIGTERM)
	switch role {
	case playDead:
		fmt.Println("first line\nlast words")
		return 3
	case playParent:
		c, err := start(player(playPolite, os.Getenv(playLogVar)), func(error) {})
		if err != nil {
			fmt.Println(err)
			return 1
		}
		fmt.Println("child", c.cmd.Process.Pid)
	}
	fmt.Println("up")
	for range signals {
		if role != playDeaf {
			return 0
		}
		fmt.Println("heard, and staying")
	}
	return 0
}

// playLogVar is where a parent's child writes.
const playLogVar = "EGRESSFLEET_TEST_PLAY_LOG"

// player is the test binary as a program.
func player(role, log string) program {
	return program{name: "the " + role, path: os.Args[0], log: log, env: []string{
		playVar + "=" + role, playLogVar + "=" + log + ".child", "GORACE=atexit_sleep_ms=0",
	}}
}

// soon bounds what a test waits for; tick is how often it looks.
const (
	soon = 20 * time.Second
	tick = 10 * time.Millisecond
)

// run executes a command line over a fleet, and returns its outputs and exit code.
func run(ctx context.Context, f Fleet, stdin string, args ...string) (out, errOut string, code int) {
	var o, e bytes.Buffer
	cmd := NewCommand(
		Streams{In: bytes.NewBufferString(stdin), Out: &o, Err: &e},
		Outside{
			Connect: func(context.Context, Temporal) (Fleet, func(), error) { return f, func() {}, nil },
			Now:     func() time.Time { return noon },
			Every:   never, After: time.After,
		})
	cmd.SetArgs(args)
	code = ExitCode(&e, cmd.ExecuteContext(ctx))
	return o.String(), e.String(), code
}

// never is the clock of a world where nothing takes long.
func never(time.Duration) (<-chan time.Time, func()) { return nil, func() {} }

// noon is when the tests are run.
var noon = time.Date(2026, 1, 31, 12, 0, 0, 0, time.UTC)
