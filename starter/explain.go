package main

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/egressfleet/egressfleet/starter/explain"
)

// proseWidth is as wide as sentences are read well.
const proseWidth = 100

func (a *app) explainCommand() *cobra.Command {
	return &cobra.Command{
		Use: "explain NAME", Short: "Say in sentences why a proxy is in its phase, and what happens next and when",
		Args: exactly(1), ValidArgsFunction: a.completeOneName,
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.withFleet(cmd.Context(), func(ctx context.Context, f Fleet) error { return a.explain(ctx, f, args[0]) })
		},
	}
}

func (a *app) explain(ctx context.Context, f Fleet, name string) error {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	p, err := f.Get(ctx, a.namespace, name)
	if err != nil {
		return fmt.Errorf("explain %s/%s: %w", a.namespace, name, err)
	}
	// The timeline needs a worker; without one the rest is what a person looks for.
	timeline, untold := f.Timeline(ctx, a.namespace, name)
	if untold != nil {
		untold = fmt.Errorf("timeline: %w", untold)
	}
	e := explain.Of(p, timeline, a.Now())
	return errors.Join(a.printOr(e, explained(a.view(), e)), untold)
}

// explained is an explanation in three paragraphs.
func explained(v view, e explain.Explanation) string {
	width := proseWidth
	if v.Width > 0 {
		width = min(width, v.Width)
	}
	var b strings.Builder
	for _, part := range []struct {
		head      string
		sentences []string
	}{{"Now:", e.Now}, {"Why:", e.Why}, {"Next:", e.Next}} {
		for i, sentence := range part.sentences {
			head := part.head
			if i > 0 {
				head = ""
			}
			b.WriteString(v.Paragraph(fmt.Sprintf("%-6s", head), sentence, width))
		}
	}
	return b.String()
}
