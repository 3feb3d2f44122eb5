package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	v1 "github.com/egressfleet/egressfleet/api/v1"
)

// gonePatience is how long delete --wait waits unless told otherwise.
const gonePatience = 5 * time.Minute

type deleteOptions struct {
	wait    bool
	timeout time.Duration
	reason  string
}

func (a *app) deleteCommand() *cobra.Command {
	var o deleteOptions
	cmd := &cobra.Command{
		Use: "delete NAME…", Short: "End proxies and remove their instances", Args: atLeast(1),
		RunE: func(cmd *cobra.Command, names []string) error {
			if o.timeout <= 0 {
				return usagef("%s: --timeout: %q is not longer than nothing", cmd.CommandPath(), o.timeout)
			}
			return a.withFleet(cmd.Context(), func(ctx context.Context, f Fleet) error { return a.delete(ctx, f, names, o) })
		},
	}
	cmd.Flags().BoolVar(&o.wait, "wait", false, "wait until nothing is left of them")
	cmd.Flags().DurationVar(&o.timeout, "timeout", gonePatience, "how long --wait waits for all of them")
	cmd.Flags().StringVar(&o.reason, "reason", "starter delete", "why, for the timeline")
	return cmd
}

// delete asks for all before it waits for any.
func (a *app) delete(ctx context.Context, f Fleet, names []string, o deleteOptions) error {
	var asked []string
	var ending []v1.Proxy
	var faults []error
	for _, name := range names {
		p, err := a.deleteOne(ctx, f, name, o.reason)
		if err != nil {
			faults = append(faults, fmt.Errorf("delete %s/%s: %w", a.namespace, name, err))
			continue
		}
		asked, ending = append(asked, name), append(ending, p)
		if !o.wait && a.output == outputTable {
			faults = append(faults, a.print(a.namespace+"/"+name+" is being deleted\n"))
		}
	}
	if a.output != outputTable {
		faults = append(faults, a.printProxies(ending))
	}
	if o.wait {
		faults = append(faults, a.waitGone(ctx, f, asked, o.timeout))
	}
	return errors.Join(faults...)
}

func (a *app) deleteOne(ctx context.Context, f Fleet, name, reason string) (v1.Proxy, error) {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	return f.Delete(ctx, a.namespace, name, reason)
}

func (a *app) waitGone(ctx context.Context, f Fleet, names []string, patience time.Duration) error {
	within, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	var faults []error
	for _, name := range names {
		err := f.WaitGone(within, a.namespace, name)
		switch {
		case err != nil && within.Err() != nil && ctx.Err() == nil:
			faults = append(faults, fmt.Errorf("%s/%s is still being deleted after %s; \"starter describe %s -n %s\" says why",
				a.namespace, name, patience, name, a.namespace))
		case err != nil:
			faults = append(faults, fmt.Errorf("wait for %s/%s: %w", a.namespace, name, err))
		case a.output == outputTable:
			faults = append(faults, a.print(a.namespace+"/"+name+" is gone\n"))
		}
	}
	return errors.Join(faults...)
}
