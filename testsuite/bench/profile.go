package main

import (
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"runtime/pprof"
)

// profile begins the profiles of a part, NAME.cpu and NAME.mem in a folder, and returns
// what ends them; without a folder it does nothing. They are of this process: what a part
// runs in processes of its own it has to profile itself.
func profile(dir, name string) (stop func() error, err error) {
	if dir == "" {
		return func() error { return nil }, nil
	}
	if err := os.MkdirAll(dir, 0o750); err != nil { //nolint:gosec // where the caller says
		return nil, err
	}
	cpu, err := os.Create(filepath.Join(dir, name+".cpu")) //nolint:gosec // as above
	if err != nil {
		return nil, err
	}
	if err := pprof.StartCPUProfile(cpu); err != nil {
		return nil, errors.Join(err, cpu.Close())
	}
	return func() error {
		pprof.StopCPUProfile()
		return errors.Join(cpu.Close(), heap(filepath.Join(dir, name+".mem")))
	}, nil
}

// heap writes what was allocated since the start.
func heap(path string) error {
	file, err := os.Create(path) //nolint:gosec // as above
	if err != nil {
		return err
	}
	runtime.GC()
	return errors.Join(pprof.Lookup("allocs").WriteTo(file, 0), file.Close())
}
