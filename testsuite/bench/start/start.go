// Package start measures how long somebody who types `make run` waits for proxies that
// carry traffic, where everything is compiled and nothing runs: the programs as they are,
// as processes. It imports testsuite/devserver. Start reading at Part.
package start

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/egressfleet/egressfleet/testsuite/bench/frame"
	"github.com/egressfleet/egressfleet/testsuite/devserver"
	"github.com/egressfleet/egressfleet/testsuite/ports"
)

const (
	samples = 2 // the proxies of `make run`, always
	// limit is what a person waits for at most, in seconds.
	limit = 15
	// within ends a start that does not come to an end.
	within = 5 * time.Minute
	// ready is the last line of what `make run` prints.
	ready = "egressfleet is ready"
	// graceful is how long a run may take to end.
	graceful = time.Minute
)

// Part starts the fleet of a laptop on a folder and on ports of its own.
func Part() frame.Part {
	return frame.Part{
		Name: "start", About: "make run, with everything compiled, until its proxies carry traffic",
		Sizes: []int{samples}, OneSize: "`make run` starts two", Open: open,
		Figures: []frame.Figure{
			// Beside it the Temporal server alone, until it answers.
			{Name: "start", Unit: "s", Must: frame.AtMost(limit), At: samples},
			// What make does before it starts anything; part of the figure above.
			{Name: "make", Unit: "s"},
		},
	}
}

// scene is a module whose programs are built.
type scene struct {
	root string
}

func open(ctx context.Context, _ int) (frame.Scene, error) {
	root, err := devserver.Root()
	if err != nil {
		return frame.Scene{}, err
	}
	s := &scene{root: root}
	if err := s.build(ctx); err != nil { // the caches are warm after that
		return frame.Scene{}, err
	}
	return frame.Scene{Run: s.run}, nil
}

// build is what `make run` does before it runs anything.
func (s *scene) build(ctx context.Context) error {
	cmd := exec.CommandContext(ctx, "make", "tool-temporal", "build")
	cmd.Dir = s.root
	if said, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("make tool-temporal build: %w\n%s", err, said)
	}
	return nil
}

// run starts the server alone and the whole fleet, one after the other, each on a new
// folder.
func (s *scene) run(ctx context.Context, number int) (frame.Samples, error) {
	var alone, made, started time.Duration
	dir, err := os.MkdirTemp("", "bench-start-")
	if err != nil {
		return nil, err
	}
	err = frame.Turns(number,
		func() (err error) { alone, err = bare(ctx, dir); return err },
		func() (err error) {
			begun := time.Now()
			if err := s.build(ctx); err != nil {
				return err
			}
			made = time.Since(begun)
			started, err = s.fleet(ctx, dir)
			return err
		})
	if err := errors.Join(err, os.RemoveAll(dir)); err != nil {
		return nil, err
	}
	return frame.Samples{
		"start": {Value: (made + started).Seconds(), Baseline: alone.Seconds()},
		"make":  {Value: made.Seconds()},
	}, nil
}

// bare starts the Temporal server alone, on a file as `make run` has it.
func bare(ctx context.Context, dir string) (took time.Duration, err error) {
	server, err := devserver.NewProcess(filepath.Join(dir, "alone.db"))
	if err != nil {
		return 0, err
	}
	begun := time.Now()
	if err := server.Start(ctx); err != nil {
		return 0, err
	}
	took = time.Since(begun)
	return took, server.End(os.Interrupt)
}

// fleet starts the fleet, and ends and removes it once it is ready.
func (s *scene) fleet(ctx context.Context, dir string) (took time.Duration, err error) {
	ctx, cancel := context.WithTimeoutCause(ctx, within, fmt.Errorf("it was not ready within %s", within))
	defer cancel()
	env, err := environment(filepath.Join(dir, "dev"))
	if err != nil {
		return 0, err
	}
	defer func() {
		err = errors.Join(err, s.starter(context.WithoutCancel(ctx), env, "dev", "clean").Run())
	}()
	dev := s.starter(ctx, env, "dev")
	out, err := dev.StdoutPipe()
	if err != nil {
		return 0, err
	}
	dev.Stderr = dev.Stdout
	begun := time.Now()
	if err := dev.Start(); err != nil {
		return 0, err
	}
	said, is := await(out)
	took = time.Since(begun)
	if !is {
		return 0, errors.Join(fmt.Errorf("the fleet ended before it was ready:\n%s", said), context.Cause(ctx), dev.Wait())
	}
	if err := dev.Process.Signal(os.Interrupt); err != nil {
		return 0, err
	}
	_, _ = io.Copy(io.Discard, out) // until it has ended
	return took, dev.Wait()
}

// starter is the command line as it is built. It is interrupted where ctx ends, so that it
// ends what it has started.
func (s *scene) starter(ctx context.Context, env []string, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, filepath.Join(s.root, "bin", "starter"), args...) //nolint:gosec // ours
	cmd.Dir, cmd.Env, cmd.WaitDelay = s.root, env, graceful
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) }
	return cmd
}

// await reads until the line that says that all is ready, and returns what was said.
func await(out io.Reader) (said string, is bool) {
	var b strings.Builder
	for lines := bufio.NewScanner(out); lines.Scan(); {
		if lines.Text() == ready {
			return b.String(), true
		}
		b.WriteString(lines.Text() + "\n")
	}
	return b.String(), false
}

// environment gives a run a folder and ports of its own.
func environment(dir string) ([]string, error) {
	env := append(os.Environ(), "EGRESSFLEET_DEV_DIR="+dir)
	for _, name := range []string{"API", "METRICS", "TEMPORAL", "UI", "ECHO"} {
		port, err := ports.Take()
		if err != nil {
			return nil, err
		}
		env = append(env, "EGRESSFLEET_"+name+"_PORT="+strconv.Itoa(port))
	}
	return env, nil
}
