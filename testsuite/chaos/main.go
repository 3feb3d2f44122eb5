// Command chaos breaks everything at once, and judges what is left: clients make,
// change, replace, hold and delete proxies while the worker processes are killed, the
// Temporal server goes away, and the backend fails in every way that it may. It may
// import every room. Start reading at world.run, then judge.go, which says what
// counts. `make chaos` runs it; its last line is the outcome.
package main

import (
	"context"
	"crypto/rand"
	"encoding/binary"
	"fmt"
	"io"
	"os"
	"strconv"
	"time"

	"github.com/egressfleet/egressfleet/testsuite/outcome"
)

// The variables that repeat a run.
const (
	envSeed       = "CHAOS_SEED"
	envOperations = "CHAOS_OPERATIONS"
)

const (
	usualOperations = 800
	leastOperations = proxies // one create each
)

func main() {
	if len(os.Args) == 4 && os.Args[1] == roleWorker {
		if err := runWorker(os.Args[2], os.Args[3]); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	outcome.Main("chaos", play)
}

// play runs once and prints the outcome as the last line. A run that is not clean keeps
// its files.
func play(ctx context.Context, out io.Writer) (clean bool, err error) {
	s, err := settingsOf(os.Getenv)
	if err != nil {
		return false, err
	}
	dir, err := os.MkdirTemp("", "chaos-")
	if err != nil {
		return false, err
	}
	w := &world{settings: s, out: out, dir: dir}
	w.say("%s=%d %s=%d; files of this run: %s", envSeed, s.Seed, envOperations, s.Operations, dir)
	begun := time.Now()
	v, err := w.run(ctx)
	if err != nil {
		return false, err
	}
	clean = w.conclude(v, time.Since(begun))
	if clean {
		err = os.RemoveAll(dir)
	}
	return clean, err
}

// conclude prints what is wrong with a run, and reports whether it is nothing.
func (w *world) conclude(v verdict, took time.Duration) (clean bool) {
	faults := w.shortcomings()
	clean = v.clean() && len(faults) == 0
	for _, line := range v.Report {
		w.say("%s", line)
	}
	for _, fault := range faults {
		w.say("this run proves too little: %s", fault)
	}
	if !clean {
		w.say("%s=%d plans the same again; the files of this run stay in %s", envSeed, w.Seed, w.dir)
	}
	w.say("took %s", took.Round(time.Second))
	w.say("chaos: operations=%d kills=%d duplicates=%d leaks=%d lost=%d",
		w.accepted.Load(), w.kills.Load(), v.Duplicates, v.Leaks, v.Lost)
	return clean
}

// shortcomings says what a run did not have that it should have had.
func (w *world) shortcomings() (faults []string) {
	if n := w.kills.Load(); n < leastKills {
		faults = append(faults, fmt.Sprintf("%d workers were killed, at least %d have to be", n, leastKills))
	}
	if n := w.accepted.Load(); n < min(leastAccepted, int64(w.Operations)) {
		faults = append(faults, fmt.Sprintf("%d operations of %d were accepted, at least %d have to be",
			n, w.Operations, leastAccepted))
	}
	for _, name := range w.backend.missing() {
		faults = append(faults, "the backend never had: "+name)
	}
	return faults
}

// settingsOf reads the variables. A seed that is not given is a random one.
func settingsOf(env func(string) string) (s settings, err error) {
	s.Operations = usualOperations
	if text := env(envOperations); text != "" {
		if s.Operations, err = strconv.Atoi(text); err != nil || s.Operations < leastOperations {
			return s, fmt.Errorf("%s: %q is not a number from %d", envOperations, text, leastOperations)
		}
	}
	if text := env(envSeed); text != "" {
		if s.Seed, err = strconv.ParseUint(text, 10, 64); err != nil {
			return s, fmt.Errorf("%s: %q is not a number from 0", envSeed, text)
		}
		return s, nil
	}
	var raw [4]byte
	_, _ = rand.Read(raw[:])
	s.Seed = uint64(binary.LittleEndian.Uint32(raw[:]))
	return s, nil
}
