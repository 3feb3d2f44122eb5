package layers_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/egressfleet/egressfleet/testsuite/layers"
)

// TestImportsPointDownwards applies the table to every package, with the files of
// each platform and of the integration tests.
func TestImportsPointDownwards(t *testing.T) {
	t.Parallel()
	seeTheWholeTree(t)
	for _, goos := range []string{"linux", "darwin"} {
		t.Run(goos, func(t *testing.T) {
			t.Parallel()
			list := exec.CommandContext(t.Context(), "go", "list", "-tags=integration", "-json=ImportPath,Imports",
				layers.Module+"/...")
			list.Env = append(os.Environ(), "GOOS="+goos, "CGO_ENABLED=0")
			out, err := list.Output()
			require.NoError(t, err, "%s", stderr(err))
			packages := 0
			for decoder := json.NewDecoder(bytes.NewReader(out)); decoder.More(); packages++ {
				var pkg struct {
					ImportPath string
					Imports    []string
				}
				require.NoError(t, decoder.Decode(&pkg))
				for _, imported := range append(pkg.Imports, "errors") { // one import at least: is it in a room?
					if why := layers.Violation(pkg.ImportPath, imported); why != "" {
						t.Error(why)
					}
				}
			}
			require.Greater(t, packages, 5, "go list saw the module")
		})
	}
}

// seeTheWholeTree looks at every directory of the module. It is go list that reads
// them, which go test does not see: it would repeat an old answer from its cache.
func seeTheWholeTree(t *testing.T) {
	t.Helper()
	require.NoError(t, filepath.WalkDir("../..", func(_ string, entry fs.DirEntry, err error) error {
		if entry != nil && entry.IsDir() && (entry.Name() == "bin" || entry.Name() == ".git") {
			return fs.SkipDir
		}
		return err
	}))
}

func stderr(err error) string {
	if failed, ok := errors.AsType[*exec.ExitError](err); ok {
		return string(failed.Stderr)
	}
	return ""
}

func TestViolation(t *testing.T) {
	t.Parallel()
	const our = layers.Module + "/"
	for name, c := range map[string]struct {
		from, to string
		allowed  bool
	}{
		"the words import the standard library":         {"api/v1", "time", true},
		"the words import no library":                   {"api/v1", "sigs.k8s.io/yaml", false},
		"the words import no room":                      {"api/v1", our + "providers", false},
		"the words import no plumbing":                  {"api/v1", our + "internal/config", false},
		"the API imports echo":                          {"api/server", "github.com/labstack/echo/v4", true},
		"the API imports the fleet":                     {"api/server", our + "starter/fleet", true},
		"the API imports its own packages":              {"api/server", our + "api/server/strictjson", true},
		"a package of the API imports the API's words":  {"api/server/openapi", our + "api/v1", true},
		"the API imports discovery":                     {"api/server", our + "api/discovery", true},
		"the API hands out its contract":                {"api/server", our + "api", true},
		"a client knows no server":                      {"api/client", our + "api/server", false},
		"the API imports who may ask":                   {"api/server", our + "api/access", true},
		"who may ask does not import the words":         {"api/access", our + "api/v1", false},
		"who may ask knows no HTTP":                     {"api/access", "github.com/labstack/echo/v4", false},
		"the API imports plumbing":                      {"api/server", our + "internal/telemetry", true},
		"the API knows no Temporal":                     {"api/server", "go.temporal.io/sdk/client", false},
		"the API knows no workflow":                     {"api/server", our + "workflows/proxy", false},
		"the API knows no provider":                     {"api/server", our + "providers", false},
		"the API does not import the command line":      {"api/server", our + "starter", false},
		"the API imports its pages":                     {"api/server", our + "api/page", true},
		"a page imports the words":                      {"api/page", our + "api/v1", true},
		"a page knows no fleet":                         {"api/page", our + "starter/fleet", false},
		"a page knows no server":                        {"api/page", "github.com/labstack/echo/v4", false},
		"discovery does not import the API":             {"api/discovery", our + "api/server", false},
		"the fleet imports workflow names":              {"starter/fleet", our + "workflows/proxy", true},
		"the fleet imports a Temporal client":           {"starter/fleet", "go.temporal.io/sdk/client", true},
		"the fleet knows no echo":                       {"starter/fleet", "github.com/labstack/echo/v4", false},
		"the fleet knows no provider":                   {"starter/fleet", our + "providers/local", false},
		"the fleet knows no activity":                   {"starter/fleet", our + "activities", false},
		"a workflow imports another":                    {"workflows", our + "workflows/proxy", true},
		"a workflow imports activity names":             {"workflows/proxy", our + "activities", true},
		"a workflow imports State and Class":            {"workflows/proxy", our + "providers", true},
		"a workflow imports the workflow SDK":           {"workflows/proxy", "go.temporal.io/sdk/workflow", true},
		"a workflow parses addresses":                   {"workflows/proxy", "net/netip", true},
		"a workflow knows no provider":                  {"workflows/proxy", our + "providers/local", false},
		"a workflow knows no fleet":                     {"workflows/proxy", our + "starter/fleet", false},
		"a workflow makes no request":                   {"workflows/proxy", "net/http", false},
		"a workflow reads no file":                      {"workflows/proxy", "os", false},
		"a workflow starts no process":                  {"workflows/proxy", "os/exec", false},
		"a workflow throws no dice":                     {"workflows/proxy", "math/rand/v2", false},
		"a workflow has no client":                      {"workflows/proxy", "go.temporal.io/sdk/client", false},
		"a workflow knows no backend":                   {"workflows/gc", "k8s.io/client-go/kubernetes", false},
		"an activity imports the contract":              {"activities", our + "providers", true},
		"an activity imports the prober":                {"activities", our + "activities/probe", true},
		"an activity knows no workflow":                 {"activities", our + "workflows/proxy", false},
		"an activity knows no fleet":                    {"activities", our + "starter/fleet", false},
		"an activity knows no provider":                 {"activities", our + "providers/local", false},
		"an activity knows no registry":                 {"activities", our + "providers/registry", false},
		"the prober knows no Temporal":                  {"activities/probe", "go.temporal.io/sdk/activity", false},
		"the prober knows no activity":                  {"activities/probe", our + "activities", false},
		"the contract imports the standard library":     {"providers", "log/slog", true},
		"the contract imports no OpenTelemetry":         {"providers", "go.opentelemetry.io/otel/trace", false},
		"the contract imports no room":                  {"providers", our + "api/v1", false},
		"the contract imports no plumbing":              {"providers", our + "internal/telemetry", false},
		"a decorator imports OpenTelemetry":             {"providers/decorators", "go.opentelemetry.io/otel/trace", true},
		"a decorator imports the contract":              {"providers/decorators", our + "providers", true},
		"a decorator knows no Temporal":                 {"providers/decorators", "go.temporal.io/sdk/temporal", false},
		"a decorator knows no provider":                 {"providers/decorators", our + "providers/local", false},
		"the registry knows no provider":                {"providers/registry", our + "providers/local", false},
		"the list of providers imports them":            {"providers/all", our + "providers/local", true},
		"the list of providers imports the registry":    {"providers/all", our + "providers/registry", true},
		"a provider imports its SDK":                    {"providers/gcp", "cloud.google.com/go/compute/apiv1", true},
		"a provider imports the contract":               {"providers/gcp", our + "providers", true},
		"a provider imports its own parts":              {"providers/kvm", our + "providers/kvm/seed", true},
		"the parts of a provider import one another":    {"providers/kvm/image", our + "providers/kvm/seed", true},
		"a provider knows no other":                     {"providers/kvm", our + "providers/local", false},
		"the parts of a provider know no other":         {"providers/kvm/seed", our + "providers/gcp", false},
		"a provider knows no registry":                  {"providers/local", our + "providers/registry", false},
		"a provider knows no Temporal":                  {"providers/local", "go.temporal.io/sdk/activity", false},
		"a provider knows no API":                       {"providers/local", our + "api/v1", false},
		"plumbing imports plumbing":                     {"internal/telemetry", our + "internal/config", true},
		"plumbing imports libraries":                    {"internal/config", "github.com/spf13/viper", true},
		"plumbing knows no room":                        {"internal/config", our + "api/v1", false},
		"the worker imports everything":                 {"worker", our + "providers/all", true},
		"the worker does not import the command line":   {"worker", our + "starter", false},
		"the worker does not import a test's fake":      {"worker", our + "testsuite/fake", false},
		"the command line imports the fleet":            {"starter", our + "starter/fleet", true},
		"the command line does not import the worker":   {"starter", our + "worker", false},
		"the command line imports the samples":          {"starter", our + "docs/samples", true},
		"a suite imports what it tests":                 {"testsuite/realserver", our + "workflows/proxy", true},
		"a suite imports another":                       {"testsuite/providertest", our + "testsuite/fake", true},
		"a tool imports what it documents":              {"tools/docs", our + "providers/all", true},
		"nothing imports a tool":                        {"activities", our + "tools/build", false},
		"a package that is in no room is an error":      {"shared/utils", "errors", false},
		"a package that imports one is an error":        {"worker", our + "shared/utils", false},
		"the root of the module is no room":             {"", "errors", false},
		"a name that only begins like a room is none":   {"providersx", "errors", false},
		"a module that only begins like ours is theirs": {"worker", layers.Module + "x/y", true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			from := strings.TrimSuffix(our+c.from, "/")
			why := layers.Violation(from, c.to)
			require.Equal(t, c.allowed, why == "", why)
			if !c.allowed {
				require.Contains(t, why, strings.TrimPrefix(from, our), "the answer names the package")
			}
		})
	}
}
