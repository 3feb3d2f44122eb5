package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"go.temporal.io/sdk/temporal"

	"github.com/egressfleet/egressfleet/starter/fleet"
	"github.com/egressfleet/egressfleet/workflows/gc"
	"github.com/egressfleet/egressfleet/workflows/openproxy"
)

// Sweeps is what the commands ask about scheduled workflows.
type Sweeps interface {
	RunSweep(ctx context.Context, s fleet.Schedule, input, result any) error
	PauseSchedule(ctx context.Context, schedule, note string) error
	ResumeSchedule(ctx context.Context, schedule, note string) error
	ScheduleState(ctx context.Context, schedule string) (fleet.ScheduleState, error)
	LastResult(ctx context.Context, schedule string, result any) (time.Time, error)
	LastFailure(ctx context.Context, schedule string) (at time.Time, failure, err error)
}

// sweep is one scheduled workflow as the command line knows it.
type sweep struct {
	use, short string
	schedule   fleet.Schedule
	// plan and run add their flags to the command that they return.
	plan, run func() *cobra.Command
	// last returns a result to decode into, and what shows it as a table.
	last func() (result any, table func(at time.Time) string)
}

// sweepCommand is the family of commands of one scheduled workflow.
func (a *app) sweepCommand(s sweep) *cobra.Command {
	cmd := &cobra.Command{
		Use: s.use, Short: s.short, Args: exactly(0),
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	if s.plan != nil {
		cmd.AddCommand(s.plan())
	}
	if s.run != nil {
		cmd.AddCommand(s.run())
	}
	cmd.AddCommand(
		a.turnCommand("pause", "Stop its schedule until resume", s.schedule.ID, Sweeps.PauseSchedule),
		a.turnCommand("resume", "Let its schedule go on", s.schedule.ID, Sweeps.ResumeSchedule),
		a.statusCommand(s),
	)
	return cmd
}

func (a *app) turnCommand(
	use, short, schedule string, turn func(Sweeps, context.Context, string, string) error,
) *cobra.Command {
	var reason string
	cmd := &cobra.Command{
		Use: use, Short: short, Args: exactly(0),
		RunE: func(cmd *cobra.Command, _ []string) error {
			return a.withFleet(cmd.Context(), func(ctx context.Context, f Fleet) error {
				ctx, cancel := context.WithTimeout(ctx, callTimeout)
				defer cancel()
				if err := turn(f, ctx, schedule, reason); err != nil {
					return fmt.Errorf("%s %s: %w", use, schedule, absent(schedule, err))
				}
				return a.print(fmt.Sprintf("%s: %sd\n", schedule, use))
			})
		},
	}
	cmd.Flags().StringVar(&reason, "reason", "starter "+use, "why, for the schedule's note")
	return cmd
}

func (a *app) statusCommand(s sweep) *cobra.Command {
	return &cobra.Command{
		Use: "status", Short: "Say when it ran last, what it came to and when it runs next", Args: exactly(0),
		RunE: func(cmd *cobra.Command, _ []string) error {
			return a.withFleet(cmd.Context(), func(ctx context.Context, f Fleet) error {
				ctx, cancel := context.WithTimeout(ctx, callTimeout)
				defer cancel()
				return a.status(ctx, f, s)
			})
		},
	}
}

// absent says who makes a schedule that is not there.
func absent(schedule string, err error) error {
	switch {
	case !errors.Is(err, fleet.ErrNoSchedule):
		return err
	case schedule == openproxy.Schedule:
		return errors.New("it is not there; a worker with the role outside makes it when it starts")
	default:
		return errors.New("it is not there; a worker makes it when it starts")
	}
}

// sweepStatus is what is printed of a schedule as an object.
type sweepStatus struct {
	fleet.ScheduleState
	Every  string `json:"every"` // as Go writes a duration
	Result any    `json:"result,omitempty"`
	// FailedAt and Failure are of the last run, where it failed or was refused.
	FailedAt time.Time `json:"failedAt,omitzero"`
	Failure  string    `json:"failure,omitempty"`
}

func (a *app) status(ctx context.Context, f Fleet, s sweep) error {
	state, err := f.ScheduleState(ctx, s.schedule.ID)
	if err != nil {
		return fmt.Errorf("schedule %s: %w", s.schedule.ID, absent(s.schedule.ID, err))
	}
	result, table := s.last()
	at, err := f.LastResult(ctx, s.schedule.ID, result)
	if err != nil && !errors.Is(err, fleet.ErrNoRun) {
		return err
	}
	failedAt, failure, fault := f.LastFailure(ctx, s.schedule.ID)
	if fault != nil {
		return fault
	}
	shown := sweepStatus{ScheduleState: state, Every: state.Every.String()}
	text := a.stateText(state)
	if failedAt.After(at) {
		shown.FailedAt, shown.Failure = failedAt, howFailed(failure)
		text += fmt.Sprintf("last failure: %s; %s\n", a.ago(failedAt), shown.Failure)
	}
	if err == nil {
		shown.Result, text = result, text+"\n"+table(at)
	}
	return a.printOr(shown, text)
}

// howFailed is the error of a run, in a line.
func howFailed(failure error) string {
	app, says := errors.AsType[*temporal.ApplicationError](failure)
	switch {
	case failure == nil:
		return "its error could not be read"
	case !says:
		return oneLine(failure.Error())
	case app.Type() == gc.ErrRefused:
		return "it was REFUSED: " + oneLine(app.Message())
	default:
		return oneLine(app.Message())
	}
}

// printOr prints an object where one is asked for, and otherwise a text.
func (a *app) printOr(object any, text string) error {
	switch a.output {
	case outputJSON:
		return a.printJSON(object)
	case outputYAML:
		return a.printYAMLOf(object)
	default:
		return a.print(text)
	}
}

func (a *app) stateText(s fleet.ScheduleState) string {
	var b strings.Builder
	paused := ""
	if s.Paused {
		paused = ", PAUSED: " + oneLine(s.Note)
	}
	fmt.Fprintf(&b, "%s: every %s%s\n", s.ID, s.Every, paused)
	fmt.Fprintf(&b, "last success: %s\n", a.ago(s.LastSuccess))
	fmt.Fprintf(&b, "last run:     %s\n", a.ago(s.LastRun))
	if !s.NextRun.IsZero() && !s.Paused {
		fmt.Fprintf(&b, "next run:     in %s\n", s.NextRun.Sub(a.Now()).Round(time.Second))
	}
	return b.String()
}

func (a *app) ago(at time.Time) string {
	if at.IsZero() {
		return "none that Temporal keeps"
	}
	return a.Now().Sub(at).Round(time.Second).String() + " ago"
}
