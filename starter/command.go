package main

import (
	"context"
	"io"
	"time"

	"github.com/spf13/cobra"

	v1 "github.com/egressfleet/egressfleet/api/v1"
	"github.com/egressfleet/egressfleet/internal/telemetry"
	"github.com/egressfleet/egressfleet/starter/fleet"
	"github.com/egressfleet/egressfleet/starter/terminal"
)

// Streams are what a command reads and writes.
type Streams struct {
	In       io.Reader
	Out, Err io.Writer
	// OutScreen and ErrScreen measure where Out and Err go, which a person may widen
	// meanwhile; nil: to no terminal.
	OutScreen, ErrScreen func() terminal.Screen
}

// Outside is what commands need of the world.
type Outside struct {
	// Connect returns the fleet; the caller calls the function when it is done.
	Connect func(context.Context, Temporal) (Fleet, func(), error)
	Now     func() time.Time
	// Every ticks until the function that it returns is called.
	Every func(time.Duration) (<-chan time.Time, func())
	// After ticks once.
	After func(time.Duration) <-chan time.Time
}

// Fleet is what the commands ask of starter/fleet.
type Fleet interface {
	Apply(ctx context.Context, p v1.Proxy, r fleet.Request) (v1.Proxy, bool, error)
	Get(ctx context.Context, namespace, name string) (v1.Proxy, error)
	Delete(ctx context.Context, namespace, name, reason string, r fleet.Request) (v1.Proxy, error)
	LeaveBehind(ctx context.Context, namespace, name, reason string, r fleet.Request) (v1.Proxy, error)
	Replace(ctx context.Context, namespace, name, reason string, r fleet.Request) (v1.Proxy, error)
	Retry(ctx context.Context, namespace, name, reason string, r fleet.Request) (v1.Proxy, error)
	Hold(ctx context.Context, namespace, name string, h v1.Hold, r fleet.Request) (v1.Proxy, error)
	Resume(ctx context.Context, namespace, name, reason string, r fleet.Request) (v1.Proxy, error)
	List(ctx context.Context, namespace string) ([]v1.Proxy, error)
	Timeline(ctx context.Context, namespace, name string) ([]v1.Event, error)
	WaitGone(ctx context.Context, namespace, name string) error
	Sweeps
}

// callTimeout bounds one request to the fleet, which gives up after 8 s where it
// asks a worker.
const callTimeout = 15 * time.Second

// app is what all commands share: the streams, the world and the global flags.
type app struct {
	Streams
	Outside
	temporal  Temporal
	namespace string
	output    string
	teller    teller
}

// NewCommand returns the command line.
func NewCommand(streams Streams, outside Outside) *cobra.Command {
	a := &app{Streams: streams, Outside: outside, teller: teller{to: streams.Err, screen: streams.ErrScreen}}
	root := &cobra.Command{
		Use: "starter", Short: "Start, ask and end the proxies of a fleet",
		SilenceUsage: true, SilenceErrors: true,
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) > 0 {
				return usagef("%q is no command; see %s --help", args[0], cmd.CommandPath())
			}
			return nil
		},
		RunE:              func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
		PersistentPreRunE: func(*cobra.Command, []string) error { return checkOutput(a.output) },
	}
	flags := root.PersistentFlags()
	flags.StringVarP(&a.namespace, "namespace", "n", "default", "namespace of the proxies")
	flags.StringVarP(&a.output, "output", "o", outputTable, "form of the answer: table, wide, json or yaml")
	flags.StringVar(&a.temporal.Address, "temporal-address", "", "host:port of Temporal (TEMPORAL_ADDRESS)")
	flags.StringVar(&a.temporal.Namespace, "temporal-namespace", "", "Temporal namespace (TEMPORAL_NAMESPACE)")
	root.SetFlagErrorFunc(func(_ *cobra.Command, err error) error { return usageError{err} })
	root.CompletionOptions.DisableDefaultCmd = true
	root.SetIn(streams.In)
	root.SetOut(streams.Out)
	root.SetErr(streams.Err)
	root.AddCommand(a.applyCommand(), a.getCommand(), a.describeCommand(), a.explainCommand(), a.timelineCommand(),
		a.replaceCommand(), a.retryCommand(), a.holdCommand(), a.resumeCommand(), a.deleteCommand(),
		a.providersCommand(), a.gcCommand(), a.driftCommand(), a.healthCommand(), a.checkCommand(), a.openCommand(),
		a.drainCommand(), a.adoptCommand(), a.devCommand(), a.completionCommand(), a.exitCodesTopic(), a.versionCommand())
	if err := a.complete(root); err != nil { // only for a flag that is not there, or is there twice
		root.RunE = func(*cobra.Command, []string) error { return err }
	}
	return root
}

// atLeast and exactly are cobra's checks as usage errors.
func atLeast(n int) cobra.PositionalArgs { return usage(cobra.MinimumNArgs(n)) }
func exactly(n int) cobra.PositionalArgs { return usage(cobra.ExactArgs(n)) }

func usage(check cobra.PositionalArgs) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		if err := check(cmd, args); err != nil {
			return usagef("%s: %w", cmd.CommandPath(), err)
		}
		return nil
	}
}

// withFleet connects, and closes the connection after do.
func (a *app) withFleet(ctx context.Context, do func(context.Context, Fleet) error) error {
	defer a.slowly("connecting to Temporal")()
	fleet, done, err := a.Connect(ctx, a.temporal)
	if err != nil {
		return err
	}
	defer done()
	a.step("waiting for the fleet to answer")
	return do(ctx, fleet)
}

func (a *app) versionCommand() *cobra.Command {
	return &cobra.Command{
		Use: "version", Short: "Print the version", Args: exactly(0),
		RunE: func(*cobra.Command, []string) error { return a.print(telemetry.Version() + "\n") },
	}
}

// print writes text to the standard output.
func (a *app) print(text string) (err error) {
	a.teller.aside(func() { _, err = io.WriteString(a.Out, text) })
	return err
}
