package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	v1 "github.com/egressfleet/egressfleet/api/v1"
	"github.com/egressfleet/egressfleet/docs/samples"
	"github.com/egressfleet/egressfleet/internal/config"
)

// devBackend is what a run is on in the place of the provider local; the zero value is
// nothing.
type devBackend struct {
	providers string   // a providers file, which the worker follows
	proxies   string   // a file with the Proxies to apply
	beside    []string // a program beside this one, and its arguments; it ends with the run
}

// samplesFile is the name of the file with the Proxies of the run.
func (b devBackend) samplesFile() string {
	if b.proxies == "" {
		return samplesFile
	}
	return b.proxies
}

// sampleProxies are the Proxies of the run.
func (b devBackend) sampleProxies() ([]v1.Proxy, error) {
	text := samples.Proxies
	if b.proxies != "" {
		var err error
		if text, err = os.ReadFile(b.proxies); err != nil {
			return nil, fmt.Errorf("--proxies: %w", err)
		}
	}
	return DecodeProxies(b.samplesFile(), bytes.NewReader(text), "default")
}

// passing reports whether the backend ends with the run; then so does the state, which
// would tell of instances that are nowhere.
func (b devBackend) passing() bool { return len(b.beside) > 0 }

// check looks for what the flags name.
func (b devBackend) check() error {
	if b.providers == "" {
		return nil
	}
	if _, err := os.Stat(b.providers); err != nil {
		return fmt.Errorf("--providers: %w", err)
	}
	return nil
}

// absolute names files in full, since the worker runs elsewhere. beside is the program
// and its arguments.
func (b devBackend) absolute(beside []string) (_ devBackend, err error) {
	if (b.providers == "") != (b.proxies == "") {
		return b, errors.New("--providers and --proxies go together: a Proxy names its provider")
	}
	if len(beside) > 0 && b.providers == "" {
		return b, errors.New("--beside needs --providers: nothing would ask that program")
	}
	b.beside = beside
	if b.providers != "" {
		b.providers, err = filepath.Abs(b.providers)
	}
	return b, err
}

// startBeside starts what the backend is. Its address is the providers file's to know:
// the worker asks again until it answers.
func (r *devRun) startBeside() (err error) {
	if !r.settings.passing() {
		return nil
	}
	name := r.settings.beside[0]
	if err := os.MkdirAll(r.home.path(logDir), homeMode); err != nil {
		return err
	}
	r.beside, err = start(program{
		name: name, path: filepath.Join(r.settings.binaries, name), args: r.settings.beside[1:],
		env: childEnv(os.Environ()), log: r.home.path(logDir, besideLog),
	}, r.died)
	return err
}

// leave removes the state of a run that somebody ended, and whose backend has ended, too.
// After a failure the logs are worth more than order.
func (r *devRun) leave(ctx context.Context) error {
	if !r.settings.passing() || ctx.Err() == nil {
		return nil
	}
	_, err := r.home.remove()
	return err
}

// farewell says what a run leaves.
func (s devSettings) farewell() string {
	if s.passing() {
		return "stopped; nothing is left"
	}
	return "stopped; the instances and the state in " + s.dir + " stay, \"make clean-dev\" removes them"
}

// forget removes what a run on a passing backend was killed before it could remove.
func (b devBackend) forget(home *devHome) error {
	if !b.passing() {
		return nil
	}
	if _, err := os.Stat(home.path(providersFile)); !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("%s: %q holds the state of a run on this machine's own proxies, and this one would remove it "+
			"at its end; name another", config.EnvDevDir, home.dir)
	}
	return home.removeDatabase()
}
