package main

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	v1 "github.com/egressfleet/egressfleet/api/v1"
	"github.com/egressfleet/egressfleet/starter/fleet"
)

// message is what a command sends to proxies, one after the other.
type message struct {
	verb string // for errors
	said string // of one that took it
	send func(ctx context.Context, f Fleet, name, requestID string) (v1.Proxy, error)
}

func (a *app) replaceCommand() *cobra.Command {
	var why v1.Why
	cmd := &cobra.Command{
		Use: "replace NAME…", Short: "Remove the instances of proxies and make others", Args: atLeast(1),
		ValidArgsFunction: a.completeNames,
		RunE: func(cmd *cobra.Command, names []string) error {
			return a.tell(cmd, names, why.Validate(), message{
				"replace", "is being replaced",
				func(ctx context.Context, f Fleet, name, id string) (v1.Proxy, error) {
					return f.Replace(ctx, a.namespace, name, why.Reason, fleet.Request{ID: id})
				},
			})
		},
	}
	reasonFlag(cmd, &why.Reason)
	return cmd
}

func (a *app) retryCommand() *cobra.Command {
	var why v1.Why
	cmd := &cobra.Command{
		Use: "retry NAME…", Short: "Try again now what proxies wait for; releases a blocked one", Args: atLeast(1),
		ValidArgsFunction: a.completeNames,
		RunE: func(cmd *cobra.Command, names []string) error {
			return a.tell(cmd, names, why.Validate(), message{
				"retry", "is tried again",
				func(ctx context.Context, f Fleet, name, id string) (v1.Proxy, error) {
					return f.Retry(ctx, a.namespace, name, why.Reason, fleet.Request{ID: id})
				},
			})
		},
	}
	reasonFlag(cmd, &why.Reason)
	return cmd
}

func (a *app) holdCommand() *cobra.Command {
	var h v1.Hold
	cmd := &cobra.Command{
		Use: "hold NAME…", Short: "Take proxies out of discovery; nothing happens at their backends", Args: atLeast(1),
		ValidArgsFunction: a.completeNames,
		Example:           "  starter hold a --for 1h --reason billing",
		RunE: func(cmd *cobra.Command, names []string) error {
			if h.For == "" && cmd.Flags().Changed("for") {
				return usagef("%s: --for: %q is no time; leave it out for a hold until resume", cmd.CommandPath(), "")
			}
			said := "is held until it is resumed"
			if h.For != "" {
				said = "is held for " + string(h.For)
			}
			return a.tell(cmd, names, h.Validate(), message{
				"hold", said,
				func(ctx context.Context, f Fleet, name, id string) (v1.Proxy, error) {
					return f.Hold(ctx, a.namespace, name, h, fleet.Request{ID: id})
				},
			})
		},
	}
	reasonFlag(cmd, &h.Reason)
	cmd.Flags().StringVar((*string)(&h.For), "for", "", "how long, such as 90s or 1h30m; until resume without it")
	return cmd
}

func (a *app) resumeCommand() *cobra.Command {
	var why v1.Why
	cmd := &cobra.Command{
		Use: "resume NAME…", Short: "Give held proxies back to discovery", Args: atLeast(1),
		ValidArgsFunction: a.completeNames,
		RunE: func(cmd *cobra.Command, names []string) error {
			return a.tell(cmd, names, why.Validate(), message{
				"resume", "is not held any more",
				func(ctx context.Context, f Fleet, name, id string) (v1.Proxy, error) {
					return f.Resume(ctx, a.namespace, name, why.Reason, fleet.Request{ID: id})
				},
			})
		},
	}
	reasonFlag(cmd, &why.Reason)
	return cmd
}

func reasonFlag(cmd *cobra.Command, reason *string) {
	cmd.Flags().StringVar(reason, "reason", "starter "+cmd.Name(), "why, for the timeline")
}

// tell goes on after a failure, so that one bad name holds up no other. Invalid is what
// is wrong with the message itself, whose fields are called as the flags are.
func (a *app) tell(cmd *cobra.Command, names []string, invalid error, m message) error {
	if invalid != nil {
		return usagef("%s: --%w", cmd.CommandPath(), invalid)
	}
	return a.withFleet(cmd.Context(), func(ctx context.Context, f Fleet) error {
		var took []v1.Proxy
		var faults []error
		for _, name := range names {
			p, err := a.tellOne(ctx, f, name, m)
			if err != nil {
				faults = append(faults, fmt.Errorf("%s %s/%s: %w", m.verb, a.namespace, name, err))
				continue
			}
			took = append(took, p)
			if a.forPeople() {
				faults = append(faults, a.print(a.namespace+"/"+name+" "+m.said+"\n"))
			}
		}
		if !a.forPeople() {
			faults = append(faults, a.printProxies(took))
		}
		return errors.Join(faults...)
	})
}

// tellOne names its request, so that a repetition on the way has one effect.
func (a *app) tellOne(ctx context.Context, f Fleet, name string, m message) (v1.Proxy, error) {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	return m.send(ctx, f, name, rand.Text())
}
