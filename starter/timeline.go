package main

import (
	"context"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	v1 "github.com/egressfleet/egressfleet/api/v1"
)

func (a *app) timelineCommand() *cobra.Command {
	return &cobra.Command{
		Use: "timeline NAME", Short: "Show what became of a proxy, step by step, the newest last", Args: exactly(1),
		ValidArgsFunction: a.completeOneName,
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.withFleet(cmd.Context(), func(ctx context.Context, f Fleet) error { return a.timeline(ctx, f, args[0]) })
		},
	}
}

func (a *app) timeline(ctx context.Context, f Fleet, name string) error {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	events, err := f.Timeline(ctx, a.namespace, name)
	if err != nil {
		return fmt.Errorf("timeline %s/%s: %w", a.namespace, name, err)
	}
	list := struct {
		Items []v1.Event `json:"items"`
	}{append([]v1.Event{}, events...)} // [] rather than null
	return a.printOr(list, eventTable(a.view(), "", events))
}

// eventTable shows one event a line.
func eventTable(v view, indent string, events []v1.Event) string {
	if len(events) == 0 {
		return indent + "nothing yet\n"
	}
	rows := [][]string{{"AT", "PHASE", "REASON", "CLASS", "DETAIL"}}
	for _, e := range events {
		rows = append(rows, []string{
			e.At.UTC().Format(time.DateTime), string(e.Phase), e.Reason, e.Class, oneLine(e.Detail),
		})
	}
	return v.Table(indent, rows)
}
