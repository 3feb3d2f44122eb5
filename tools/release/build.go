package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
)

// stamp is the variable that says which version a binary is.
const stamp = "github.com/egressfleet/egressfleet/internal/telemetry.stamped"

// platform is what a binary runs on.
type platform struct{ system, processor string }

func (p platform) String() string { return p.system + "-" + p.processor }

// here is what this process runs on.
func here() platform { return platform{runtime.GOOS, runtime.GOARCH} }

// platforms are all that binaries are published for.
func platforms() []platform {
	return []platform{{"linux", "amd64"}, {"linux", "arm64"}, {"darwin", "arm64"}}
}

// chosen are the platforms of a list with commas; nothing is all of them.
func chosen(list string) ([]platform, error) {
	if list == "" {
		return platforms(), nil
	}
	var found []platform
	for name := range strings.SplitSeq(list, ",") {
		at := slices.IndexFunc(platforms(), func(p platform) bool { return p.String() == name })
		if at < 0 {
			return nil, fmt.Errorf("platform %q: there are %v", name, platforms())
		}
		found = append(found, platforms()[at])
	}
	return found, nil
}

// commands are the packages that become binaries.
func commands() []string { return []string{"worker", "starter"} }

// job is what a build is made from.
type job struct {
	root    string // folder of the module
	version string
	say     io.Writer
	on      []platform
	more    []string // of the environment
}

// flags leave out everything that is not the same in another folder, at another time or
// in another clone: paths, the build's id, and what git says.
func flags(version string) []string {
	return []string{"-trimpath", "-buildvcs=false", "-ldflags=-s -w -buildid= -X " + stamp + "=" + version}
}

// environment has nothing that this machine was set to. Later entries win.
func environment(p platform, more []string) []string {
	return append(append(os.Environ(),
		"GOOS="+p.system, "GOARCH="+p.processor, "GOAMD64=v1", "GOARM64=v8.0",
		"CGO_ENABLED=0", "GOFLAGS=", "GOEXPERIMENT=", "GOWORK=off", "GODEBUG="), more...)
}

// compile makes one binary.
func compile(ctx context.Context, j job, command string, p platform, to string) error {
	args := append(append([]string{"build"}, flags(j.version)...), "-o", to, "./"+command)
	compiler := exec.CommandContext(ctx, "go", args...) //nolint:gosec // from the lists above
	compiler.Dir, compiler.Env = j.root, environment(p, j.more)
	if words, err := compiler.CombinedOutput(); err != nil {
		return fmt.Errorf("go build ./%s for %s: %w\n%s", command, p, err, words)
	}
	return nil
}

// binaryName is what a published binary is called.
func binaryName(command string, p platform) string { return command + "-" + p.String() }

// asked runs a binary of this platform and returns what it says its version is.
func asked(ctx context.Context, binary string) (string, error) {
	words, err := exec.CommandContext(ctx, binary, "version").Output() //nolint:gosec // it was just built
	if err != nil {
		return "", fmt.Errorf("%s version: %w", filepath.Base(binary), err)
	}
	return strings.TrimSpace(string(words)), nil
}
