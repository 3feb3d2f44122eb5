package temporalserver_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
	"go.yaml.in/yaml/v3"

	"github.com/egressfleet/egressfleet/testsuite/temporalserver"
)

func TestFailedTasks(t *testing.T) {
	t.Parallel()
	const polls = "temporal_num_pollers{poller_type=\"workflow_task\"} 2\n"
	const failed = "temporal_workflow_task_execution_failed_total"
	const typed = "# TYPE " + failed + " counter\n"
	const ofProxies = polls + typed + failed + "{workflow_type=\"Proxy\",failure_reason=\"WorkflowError\"} "
	for name, c := range map[string]struct {
		metrics string
		all     int
		lines   []string
		err     string
	}{
		"none has failed":    {metrics: polls},
		"none that counts":   {metrics: ofProxies + "0\n"},
		"nobody's metrics":   {err: "not those of a worker"},
		"another one's":      {metrics: "up 1\n", err: "not those of a worker"},
		"what is no metrics": {metrics: "<html>", err: "text format parsing error"},
		"some, of two reasons": {
			metrics: ofProxies + "3\n" + failed + "{workflow_type=\"OrphanGC\",failure_reason=\"NonDeterminismError\"} 2\n",
			all:     5,
			lines:   []string{"2 of OrphanGC (NonDeterminismError)", "3 of Proxy (WorkflowError)"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			all, lines, err := temporalserver.FailedTasks(c.metrics)
			if c.err != "" {
				require.ErrorContains(t, err, c.err)
				return
			}
			require.NoError(t, err)
			require.Equal(t, c.all, all)
			require.Equal(t, c.lines, lines)
		})
	}
}

// config is what of a configuration tells servers apart.
type config struct {
	Persistence struct {
		NumHistoryShards int `yaml:"numHistoryShards"`
		Datastores       map[string]struct{ SQL map[string]any }
	}
	Global struct {
		Membership struct {
			BroadcastAddress string `yaml:"broadcastAddress"`
		}
	}
	Services map[string]struct {
		RPC struct {
			GRPCPort       int    `yaml:"grpcPort"`
			MembershipPort int    `yaml:"membershipPort"`
			BindOnIP       string `yaml:"bindOnIP"`
		}
	}
	ClusterMetadata struct {
		ClusterInformation struct {
			Active struct {
				RPCAddress string `yaml:"rpcAddress"`
			}
		} `yaml:"clusterInformation"`
	} `yaml:"clusterMetadata"`
}

func TestTheSecondServerOfAClusterIsConfigured(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	args, err := temporalserver.Config{
		Host: "127.0.0.12", First: "127.0.0.11", Shards: 16, Ports: temporalserver.Usual(),
		Main: "{databaseName: one}", Visibility: "{databaseName: other}",
	}.Write(dir, "temporal-2")
	require.NoError(t, err)
	require.Equal(t, []string{
		"--root", dir, "--config", "temporal-2", "--env", "production", "--allow-no-auth", "start",
	}, args)
	text, err := os.ReadFile(filepath.Join(dir, "temporal-2", "production.yaml"))
	require.NoError(t, err)
	var c config
	require.NoError(t, yaml.Unmarshal(text, &c), "%s", text)
	require.Equal(t, 16, c.Persistence.NumHistoryShards)
	require.Equal(t, map[string]any{"databaseName": "one"}, c.Persistence.Datastores["default"].SQL)
	require.Equal(t, map[string]any{"databaseName": "other"}, c.Persistence.Datastores["visibility"].SQL)
	require.Equal(t, "127.0.0.12", c.Global.Membership.BroadcastAddress)
	require.Equal(t, "127.0.0.11:7233", c.ClusterMetadata.ClusterInformation.Active.RPCAddress)
	require.Len(t, c.Services, 4)
	taken := map[int]bool{}
	for name, s := range c.Services {
		require.Equal(t, "127.0.0.12", s.RPC.BindOnIP, name)
		taken[s.RPC.GRPCPort], taken[s.RPC.MembershipPort] = true, true
	}
	require.Len(t, taken, 8, "no two listen on one port: %s", text)
	require.Equal(t, 7233, c.Services["frontend"].RPC.GRPCPort)
}
