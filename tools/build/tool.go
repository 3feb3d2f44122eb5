package main

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
)

// tool is one pinned command.
type tool struct {
	name   string // in bin/
	module string // the directory below tools/ whose go.mod pins it
	pkg    string // what to build
	takes  string // about how long, on two cores and with cold caches
	stamp  string // what a linker writes into it, or nothing
}

// kubernetes is the release that tools/kubernetes pins.
const kubernetes = "v1.36.3"

// stampOf is for the linker. The programs of Kubernetes tell each other their version,
// and cannot read that of a build without it.
func stampOf(release string) string {
	const pkg = "-X k8s.io/component-base/version."
	major, minor, _ := strings.Cut(strings.TrimPrefix(release, "v"), ".")
	minor, _, _ = strings.Cut(minor, ".")
	return pkg + "gitVersion=" + release + " " + pkg + "gitMajor=" + major + " " + pkg + "gitMinor=" + minor
}

// tools are all that there are; a new one needs a line here and a tool line in its
// go.mod.
func tools() []tool {
	list := []tool{
		{"temporal", "temporal", "github.com/temporalio/cli/cmd/temporal", "4 minutes", ""},
		{"temporal-server", "temporal-server", "go.temporal.io/server/cmd/server", "5 minutes", ""},
		{"temporal-sql-tool", "temporal-server", "go.temporal.io/server/cmd/tools/sql", "10 seconds", ""},
		{"golangci-lint", "lint", "github.com/golangci/golangci-lint/v2/cmd/golangci-lint", "2 minutes", ""},
		{"workflowcheck", "lint", "go.temporal.io/sdk/contrib/tools/workflowcheck", "20 seconds", ""},
		{"oapi-codegen", "openapi", "github.com/oapi-codegen/oapi-codegen/v2/cmd/oapi-codegen", "30 seconds", ""},
		{"jaeger", "jaeger", "github.com/jaegertracing/jaeger/cmd/jaeger", "6 minutes", ""},
		{"kwok", "kwok", "sigs.k8s.io/kwok/cmd/kwok", "3 minutes", ""},
		{"helm", "helm", "helm.sh/helm/v3/cmd/helm", "2 minutes", ""},
		{"cyclonedx-gomod", "sbom", "github.com/CycloneDX/cyclonedx-gomod/cmd/cyclonedx-gomod", "a minute", ""},
		{"govulncheck", "vuln", "golang.org/x/vuln/cmd/govulncheck", "30 seconds", ""},
		{"benchstat", "benchstat", "golang.org/x/perf/cmd/benchstat", "5 seconds", ""},
	}
	// The parts of Kubernetes have most of their packages in common: who comes first pays.
	takes := "5 minutes"
	for _, part := range []string{"kube-apiserver", "kubelet", "kube-scheduler", "kube-controller-manager"} {
		list = append(list, tool{part, "kubernetes", "k8s.io/kubernetes/cmd/" + part, takes, stampOf(kubernetes)})
		takes = "a minute, or 5 without kube-apiserver before it,"
	}
	return list
}

// find returns the tools of the names, in that order.
func find(names []string) ([]tool, error) {
	known := tools()
	list := make([]string, len(known))
	for i, t := range known {
		list[i] = t.name
	}
	if len(names) == 0 {
		return nil, fmt.Errorf("name a tool: %s", strings.Join(list, ", "))
	}
	found := make([]tool, 0, len(names))
	for _, name := range names {
		at := slices.Index(list, name)
		if at < 0 {
			return nil, fmt.Errorf("%q is not a tool; there are %s", name, strings.Join(list, ", "))
		}
		found = append(found, known[at])
	}
	return found, nil
}

// flags strip what only a debugger needs, and the paths of this machine.
func (t tool) flags() []string {
	return []string{"-trimpath", strings.TrimSpace("-ldflags=-s -w " + t.stamp)}
}

// environment is what a build is made in. Without C a machine that has no C compiler
// builds the same.
func environment() []string { return append(os.Environ(), "CGO_ENABLED=0", "GOWORK=off") }

// identity changes with everything that changes the tool: the pinned modules, the
// toolchain, the platform and the flags.
func identity(ctx context.Context, t tool, root string) (string, error) {
	dir := filepath.Join(root, "tools", t.module)
	show := exec.CommandContext(ctx, "go", "env", "GOVERSION", "GOOS", "GOARCH", "GOAMD64", "GOARM64", "GOFLAGS")
	show.Dir, show.Env = dir, environment()
	platform, err := show.Output()
	if err != nil {
		return "", fmt.Errorf("go env: %w", err)
	}
	parts := [][]byte{platform, []byte(t.pkg), []byte(strings.Join(t.flags(), " "))}
	for _, name := range []string{"go.mod", "go.sum"} {
		text, err := os.ReadFile(filepath.Join(dir, name)) //nolint:gosec // the module's own files
		if err != nil {
			return "", err
		}
		parts = append(parts, text)
	}
	return key(parts), nil
}

// keyChars of a digest tell two versions of a tool apart.
const keyChars = 24

// key is a digest over the parts and their borders.
func key(parts [][]byte) string {
	digest := sha256.New()
	for _, part := range parts {
		fmt.Fprintf(digest, "%d:", len(part))
		digest.Write(part)
	}
	return hex.EncodeToString(digest.Sum(nil))[:keyChars]
}
