package main

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/egressfleet/egressfleet/internal/config"
	"github.com/egressfleet/egressfleet/internal/telemetry"
)

// RunFunc is Run, or what a test puts in its place.
type RunFunc func(ctx context.Context, cfg config.Config, opts Options) error

// NewCommand returns the command line of the worker.
func NewCommand(run RunFunc) *cobra.Command {
	var file string
	root := &cobra.Command{
		Use:   "worker",
		Short: "Run the fleet's workflows and activities, and serve its API",
		Long: "worker runs workflows and activities (role worker) and serves the API (role api).\n" +
			"A setting comes from the configuration file, an EGRESSFLEET_* variable or a flag; the later wins.\n" +
			"TEMPORAL_ADDRESS, TEMPORAL_NAMESPACE, TEMPORAL_API_KEY and TEMPORAL_TLS_* say how to reach Temporal.",
		SilenceUsage: true, SilenceErrors: true,
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) > 0 {
				return usageError{fmt.Errorf("%q is no command of %s; see %s --help", args[0], cmd.Name(), cmd.Name())}
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, _ []string) error {
			cfg, err := config.Load(cmd.Flags(), file)
			if err != nil {
				return usageError{err}
			}
			return run(cmd.Context(), cfg, Options{Log: cmd.ErrOrStderr()})
		},
	}
	root.Flags().StringVar(&file, "config", "", "configuration file, in YAML")
	config.AddFlags(root.Flags())
	root.SetFlagErrorFunc(func(_ *cobra.Command, err error) error { return usageError{err} })
	root.CompletionOptions.DisableDefaultCmd = true
	root.AddCommand(newVersionCommand(), newConfigCommand(), newReadyCommand())
	return root
}

func newVersionCommand() *cobra.Command {
	return &cobra.Command{
		Use: "version", Short: "Print the version", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			_, err := fmt.Fprintln(cmd.OutOrStdout(), telemetry.Version())
			return err
		},
	}
}

func newConfigCommand() *cobra.Command {
	return &cobra.Command{
		Use: "config", Short: "Print every setting with its variable, flag and default", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return config.WriteReference(cmd.OutOrStdout()) },
	}
}
