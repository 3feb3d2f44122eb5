package local

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
)

// Config is the provider's block of the configuration.
type Config struct {
	// Dir holds everything the provider keeps, in a folder of the provider's name.
	// Required; relative to the working directory. It must be on a local disk.
	Dir string `json:"dir"`
	// AddressRange is the CIDR within 127.0.0.0/8 that instances take their addresses
	// from. Default 127.64.0.0/10 on Linux, 127.0.0.1/32 elsewhere.
	AddressRange string `json:"addressRange"`
	// Executable is run as "<executable> local-instance --dir <dir>", and calls Main.
	// Default: the program that is running.
	Executable string `json:"executable"`
}

const (
	linuxRange = "127.64.0.0/10" // Linux answers on all of 127.0.0.0/8; 4 million are enough
	otherRange = "127.0.0.1/32"  // elsewhere only this one exists without an administrator
)

// settings is a Config that was checked.
type settings struct {
	dir        string // absolute
	addresses  addressRange
	executable string // absolute
}

// resolve checks a configuration and fills in the defaults. Its errors name the
// field and the value. It looks at files, and makes none.
func (c Config) resolve() (settings, error) {
	dir, err := resolveDir(c.Dir)
	if err != nil {
		return settings{}, err
	}
	if c.AddressRange == "" {
		c.AddressRange = defaultRange()
	}
	addresses, err := parseRange(c.AddressRange)
	if err != nil {
		return settings{}, fmt.Errorf("addressRange: %q %w", c.AddressRange, err)
	}
	executable, err := resolveExecutable(c.Executable)
	if err != nil {
		return settings{}, err
	}
	return settings{dir: dir, addresses: addresses, executable: executable}, nil
}

func defaultRange() string {
	if runtime.GOOS == "linux" {
		return linuxRange
	}
	return otherRange
}

func resolveDir(dir string) (string, error) {
	if dir == "" {
		return "", errors.New(`dir: "" must name a directory`)
	}
	abs, err := filepath.Abs(dir)
	if err != nil {
		return "", fmt.Errorf("dir: %q: %w", dir, err)
	}
	// One that is not there yet is made by the first Create.
	if info, err := os.Stat(abs); err == nil && !info.IsDir() {
		return "", fmt.Errorf("dir: %q is not a directory", dir)
	}
	return abs, nil
}

func resolveExecutable(path string) (string, error) {
	if path == "" {
		return os.Executable()
	}
	abs, err := filepath.Abs(path)
	if err != nil {
		return "", fmt.Errorf("executable: %q: %w", path, err)
	}
	return abs, checkExecutable(abs)
}

// checkExecutable tells why a file cannot be run. Its errors are permanent: only
// another configuration or another file helps.
func checkExecutable(path string) error {
	const anyExecute = 0o111
	info, err := os.Stat(path)
	if err != nil {
		return fmt.Errorf("executable: %w", err)
	}
	if !info.Mode().IsRegular() || info.Mode().Perm()&anyExecute == 0 {
		return fmt.Errorf("executable: %q is not an executable file", path)
	}
	return nil
}
