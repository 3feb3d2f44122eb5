package compose_test

import (
	"maps"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/compose-spec/compose-go/v2/cli"
	"github.com/compose-spec/compose-go/v2/types"
	"github.com/spf13/pflag"
	"github.com/stretchr/testify/require"
	"sigs.k8s.io/yaml"

	"github.com/egressfleet/egressfleet/api/access"
	"github.com/egressfleet/egressfleet/internal/config"
	"github.com/egressfleet/egressfleet/providers/all"
	"github.com/egressfleet/egressfleet/providers/registry"
	"github.com/egressfleet/egressfleet/testsuite/devserver"
)

// load reads the file as an engine does: a key that the specification does not have is
// an error.
func load(t *testing.T) *types.Project {
	t.Helper()
	root, err := devserver.Root()
	require.NoError(t, err)
	options, err := cli.NewProjectOptions([]string{filepath.Join(root, "deploy", "compose", "docker-compose.yaml")},
		cli.WithConsistency(true), cli.WithInterpolation(true), cli.WithNormalization(true), cli.WithResolvedPaths(true))
	require.NoError(t, err)
	project, err := options.LoadProject(t.Context())
	require.NoError(t, err)
	return project
}

// mounted is the file of this machine that a container has at a path.
func mounted(t *testing.T, s types.ServiceConfig, target string) string {
	t.Helper()
	for _, volume := range s.Volumes {
		if volume.Target == target {
			return volume.Source
		}
	}
	require.Fail(t, "nothing is mounted", "%s in %s", target, s.Name)
	return ""
}

func TestEverythingIsThere(t *testing.T) {
	t.Parallel()
	require.Equal(t, []string{
		"grafana", "jaeger", "postgresql", "prometheus", "temporal", "temporal-namespace", "temporal-schema", "temporal-ui",
		"worker",
	}, slices.Sorted(maps.Keys(load(t).Services)))
}

func TestEveryImageIsNamedExactly(t *testing.T) {
	t.Parallel()
	release := regexp.MustCompile(`^[a-z0-9/.-]+:v?[0-9]+\.[0-9]+(\.[0-9]+)?$`)
	for name, s := range load(t).Services {
		if s.Build == nil {
			require.Regexp(t, release, s.Image, name)
			continue
		}
		require.FileExists(t, filepath.Join(s.Build.Context, s.Build.Dockerfile), name)
	}
}

func TestWhatIsMountedIsAFileOfTheRepository(t *testing.T) {
	t.Parallel()
	for name, s := range load(t).Services {
		for _, volume := range s.Volumes {
			if volume.Type == types.VolumeTypeBind {
				info, err := os.Stat(volume.Source)
				require.NoError(t, err, name)
				require.True(t, info.Mode().IsRegular(), volume.Source)
				require.True(t, volume.ReadOnly, volume.Source)
			}
		}
	}
}

func TestPortsAreOnesOwnAndOnLoopback(t *testing.T) {
	t.Parallel()
	users := map[string]string{}
	for name, s := range load(t).Services {
		for _, port := range s.Ports {
			require.Equal(t, "127.0.0.1", port.HostIP, name)
			require.NotEmpty(t, port.Published, name)
			require.Empty(t, users[port.Published], "%s and %s publish port %s", users[port.Published], name, port.Published)
			users[port.Published] = name
		}
	}
}

func TestNobodyWaitsForWhatCannotComeAbout(t *testing.T) {
	t.Parallel()
	project := load(t)
	ends := []string{"temporal-namespace", "temporal-schema"}
	for name, s := range project.Services {
		if slices.Contains(ends, name) {
			require.Nil(t, s.HealthCheck, "%s ends", name)
		} else {
			require.NotNil(t, s.HealthCheck, name)
			require.NotEmpty(t, s.HealthCheck.Test, name)
			require.False(t, s.HealthCheck.Disable, name)
		}
		for needed, dependency := range s.DependsOn {
			require.Contains(t, project.Services, needed, name)
			want := types.ServiceConditionHealthy
			if slices.Contains(ends, needed) {
				want = types.ServiceConditionCompletedSuccessfully
			}
			require.Equal(t, want, dependency.Condition, "%s on %s", name, needed)
		}
	}
}

// The server takes no older schema, and a tool may not know a newer one.
func TestTheServerAndWhatSetsItUpAreOfOneRelease(t *testing.T) {
	t.Parallel()
	services := load(t).Services
	of := func(name string) string {
		_, release, _ := strings.Cut(services[name].Image, ":")
		return release
	}
	require.NotEmpty(t, of("temporal"))
	require.Equal(t, of("temporal"), of("temporal-schema"))
	require.Equal(t, of("temporal"), of("temporal-namespace"))
}

// workerConfig is what our worker reads in its container.
func workerConfig(t *testing.T, s types.ServiceConfig) config.Config {
	t.Helper()
	require.Equal(t, types.ShellCommand{"--config", "/etc/egressfleet/worker.yaml"}, s.Command)
	sources := config.Sources{
		File: mounted(t, s, s.Command[1]), Flags: pflag.NewFlagSet("worker", pflag.ContinueOnError),
	}
	for name, value := range s.Environment {
		sources.Environ = append(sources.Environ, name+"="+*value)
	}
	config.AddFlags(sources.Flags)
	read, err := sources.Load()
	require.NoError(t, err)
	require.Empty(t, read.Warnings)
	return read
}

func TestTheWorkerReadsWhatItIsGiven(t *testing.T) {
	t.Parallel()
	project := load(t)
	worker := project.Services["worker"]
	read := workerConfig(t, worker)
	require.True(t, read.Plays(config.RoleWorker) && read.Plays(config.RoleAPI))
	_, err := access.Open(mounted(t, worker, read.API.TokensFile), nil, nil)
	require.NoError(t, err)
	entries, err := registry.LoadFile(mounted(t, worker, read.ProvidersFile))
	require.NoError(t, err)
	set, err := registry.Build(t.Context(), registry.Options{
		Installation: read.Installation, Entries: entries, Factories: all.Factories(),
	})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, set.Close()) })
	for _, port := range []int{read.API.Port, read.Metrics.Port} {
		require.True(t, slices.ContainsFunc(worker.Ports, func(p types.ServicePortConfig) bool {
			return int(p.Target) == port
		}), "port %d is not published", port)
	}
	require.Contains(t, project.Services, hostOf(t, "http://"+*worker.Environment["TEMPORAL_ADDRESS"]))
	require.Contains(t, project.Services, hostOf(t, *worker.Environment["OTEL_EXPORTER_OTLP_ENDPOINT"]))
}

func hostOf(t *testing.T, text string) string {
	t.Helper()
	address, err := url.Parse(text)
	require.NoError(t, err)
	return address.Hostname()
}

func TestOthersAskWhoIsThere(t *testing.T) {
	t.Parallel()
	project := load(t)
	var prometheus struct {
		ScrapeConfigs []struct {
			StaticConfigs []struct{ Targets []string } `json:"static_configs"`
		} `json:"scrape_configs"`
	}
	decode(t, mounted(t, project.Services["prometheus"], "/etc/prometheus/prometheus.yml"), &prometheus)
	require.Equal(t, net.JoinHostPort("worker", "9464"), prometheus.ScrapeConfigs[0].StaticConfigs[0].Targets[0])
	require.Equal(t, 9464, workerConfig(t, project.Services["worker"]).Metrics.Port)
	var grafana struct{ Datasources []struct{ URL string } }
	decode(t, mounted(t, project.Services["grafana"], "/etc/grafana/provisioning/datasources/egressfleet.yaml"), &grafana)
	require.NotEmpty(t, grafana.Datasources)
	for _, source := range grafana.Datasources {
		require.Contains(t, project.Services, hostOf(t, source.URL))
	}
}

// The chart has the one copy: what is mounted is it.
func TestAlertsAndDashboardAreThoseOfTheChart(t *testing.T) {
	t.Parallel()
	project := load(t)
	root, err := devserver.Root()
	require.NoError(t, err)
	chart := filepath.Join(root, "deploy", "helm", "egressfleet")
	prometheus, grafana := project.Services["prometheus"], project.Services["grafana"]
	var rules struct {
		Files []string `json:"rule_files"`
	}
	decode(t, mounted(t, prometheus, "/etc/prometheus/prometheus.yml"), &rules)
	require.Len(t, rules.Files, 1)
	require.Equal(t, filepath.Join(chart, "rules.yaml"), mounted(t, prometheus, rules.Files[0]))
	var boards struct {
		Providers []struct {
			Type    string
			Options struct{ Path string }
		}
	}
	decode(t, mounted(t, grafana, "/etc/grafana/provisioning/dashboards/egressfleet.yaml"), &boards)
	require.Len(t, boards.Providers, 1)
	require.Equal(t, "file", boards.Providers[0].Type)
	require.Equal(t, filepath.Join(chart, "dashboard.json"),
		mounted(t, grafana, boards.Providers[0].Options.Path+"/egressfleet.json"))
}

func decode(t *testing.T, file string, to any) {
	t.Helper()
	text, err := os.ReadFile(file)
	require.NoError(t, err)
	require.NoError(t, yaml.Unmarshal(text, to))
}
