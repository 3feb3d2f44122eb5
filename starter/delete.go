package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	v1 "github.com/egressfleet/egressfleet/api/v1"
	"github.com/egressfleet/egressfleet/starter/fleet"
)

// gonePatience is how long delete --wait waits unless told otherwise.
const gonePatience = 5 * time.Minute

type deleteOptions struct {
	wait, skipCleanup bool
	timeout           time.Duration
	reason            string
}

const deleteHelp = `End proxies and remove their instances.

A proxy ends once its backend has nothing left of it, however long that takes. Where a
backend is gone for good, --skip-cleanup --reason WHY ends the proxy all the same, also
one whose delete is stuck. It waits for that end, and says what may be left at the
backend: nobody has looked.`

func (a *app) deleteCommand() *cobra.Command {
	var o deleteOptions
	cmd := &cobra.Command{
		Use: "delete NAME…", Short: "End proxies and remove their instances", Long: deleteHelp, Args: atLeast(1),
		ValidArgsFunction: a.completeNames,
		Example:           "  starter delete a --wait\n  starter delete a --skip-cleanup --reason \"the zone is closed\"",
		RunE: func(cmd *cobra.Command, names []string) error {
			if err := o.check(cmd); err != nil {
				return err
			}
			return a.withFleet(cmd.Context(), func(ctx context.Context, f Fleet) error { return a.delete(ctx, f, names, o) })
		},
	}
	cmd.Flags().BoolVar(&o.wait, "wait", false, "wait until nothing is left of them")
	cmd.Flags().BoolVar(&o.skipCleanup, "skip-cleanup", false, "leave what is at their backends; needs --reason")
	cmd.Flags().DurationVar(&o.timeout, "timeout", gonePatience, "how long --wait and --skip-cleanup wait for all of them")
	reasonFlag(cmd, &o.reason)
	return cmd
}

func (o deleteOptions) check(cmd *cobra.Command) error {
	if o.timeout <= 0 {
		return usagef("%s: --timeout: %q is not longer than nothing", cmd.CommandPath(), o.timeout)
	}
	said := o.reason
	if !cmd.Flags().Changed("reason") { // the usual words are nobody's reason to leave anything
		said = ""
	}
	if err := (v1.Deletion{Reason: said, SkipCleanup: o.skipCleanup}).Validate(); err != nil {
		return usagef("%s: --%w", cmd.CommandPath(), err)
	}
	return nil
}

// delete asks for all before it waits for any.
func (a *app) delete(ctx context.Context, f Fleet, names []string, o deleteOptions) error {
	var ending []v1.Proxy
	var faults []error
	for _, name := range names {
		p, err := a.deleteOne(ctx, f, name, o)
		if err != nil {
			faults = append(faults, fmt.Errorf("delete %s/%s: %w", a.namespace, name, err))
			continue
		}
		ending = append(ending, p)
		if !o.wait && !o.skipCleanup && a.forPeople() {
			faults = append(faults, a.print(a.namespace+"/"+name+" is being deleted\n"))
		}
	}
	if o.skipCleanup {
		return errors.Join(append(faults, a.waitLeft(ctx, f, ending, o.timeout))...)
	}
	if !a.forPeople() {
		faults = append(faults, a.printProxies(ending))
	}
	if o.wait {
		faults = append(faults, a.waitGone(ctx, f, ending, o.timeout))
	}
	return errors.Join(faults...)
}

func (a *app) deleteOne(ctx context.Context, f Fleet, name string, o deleteOptions) (v1.Proxy, error) {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	if o.skipCleanup {
		return f.LeaveBehind(ctx, a.namespace, name, o.reason, fleet.Request{})
	}
	return f.Delete(ctx, a.namespace, name, o.reason, fleet.Request{})
}

func (a *app) waitGone(ctx context.Context, f Fleet, ending []v1.Proxy, patience time.Duration) error {
	within, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	var faults []error
	for i, p := range ending {
		name := p.Metadata.Name
		a.step("waiting until %s/%s is gone, %d of %d", a.namespace, name, i+1, len(ending))
		err := f.WaitGone(within, a.namespace, name)
		switch {
		case err != nil && within.Err() != nil && ctx.Err() == nil:
			faults = append(faults, timeoutf("%s/%s is still being deleted after %s; \"starter describe %s -n %s\" says why, "+
				"and \"starter delete --help\" what to do where its backend is gone for good",
				a.namespace, name, patience, name, a.namespace))
		case err != nil:
			faults = append(faults, fmt.Errorf("wait for %s/%s: %w", a.namespace, name, err))
		case a.forPeople():
			faults = append(faults, a.print(a.namespace+"/"+name+" is gone\n"))
		}
	}
	return errors.Join(faults...)
}

// waitLeft waits for the end of proxies that leave what is at their backends, and says
// what that is. An object shows it as its condition Deleting.
func (a *app) waitLeft(ctx context.Context, f Fleet, ending []v1.Proxy, patience time.Duration) error {
	within, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	var faults []error
	for i, p := range ending {
		name := a.namespace + "/" + p.Metadata.Name
		a.step("waiting until %s has ended, %d of %d", name, i+1, len(ending))
		err := f.WaitGone(within, a.namespace, p.Metadata.Name)
		left, leaves := errors.AsType[*fleet.LeftError](err)
		said := name + " has ended: nothing is left\n"
		switch {
		case leaves:
			said = name + " has ended: " + left.Error() + "\n"
			if left.Proxy.Metadata.Name != "" {
				ending[i] = left.Proxy
			}
		case err != nil && within.Err() != nil && ctx.Err() == nil:
			said = ""
			faults = append(faults, timeoutf("%s has not ended after %s; a worker ends it once one is there, and "+
				"a call to the backend that is under way is waited for", name, patience))
		case err != nil:
			said = ""
			faults = append(faults, fmt.Errorf("wait for %s: %w", name, err))
		}
		if a.forPeople() {
			faults = append(faults, a.print(said))
		}
	}
	if !a.forPeople() {
		faults = append(faults, a.printProxies(ending))
	}
	return errors.Join(faults...)
}
