package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	v1 "github.com/egressfleet/egressfleet/api/v1"
	"github.com/egressfleet/egressfleet/starter/fleet"
)

func (a *app) getCommand() *cobra.Command {
	var everywhere, watch bool
	cmd := &cobra.Command{
		Use: "get [NAME…]", Short: "List proxies", Args: cobra.ArbitraryArgs,
		ValidArgsFunction: a.completeNames,
		Example:           "  starter get\n  starter get -A -o wide --watch\n  starter get a b -o yaml",
		RunE: func(cmd *cobra.Command, names []string) error {
			if everywhere && len(names) > 0 {
				return usagef("%s: -A takes no name", cmd.CommandPath())
			}
			if watch && !a.forPeople() {
				return usagef("%s: --watch goes with the outputs table and wide, not with %q", cmd.CommandPath(), a.output)
			}
			if everywhere {
				a.namespace = ""
			}
			return a.withFleet(cmd.Context(), func(ctx context.Context, f Fleet) error {
				if watch {
					return a.watch(ctx, func(ctx context.Context) ([]v1.Proxy, error) { return a.some(ctx, f, names) })
				}
				return a.get(ctx, f, names)
			})
		},
	}
	cmd.Flags().BoolVarP(&everywhere, "all-namespaces", "A", false, "list the proxies of every namespace")
	cmd.Flags().BoolVarP(&watch, "watch", "w", false, "show them again as they change, until Ctrl-C")
	return cmd
}

func (a *app) get(ctx context.Context, f Fleet, names []string) error {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	if len(names) == 0 {
		proxies, err := f.List(ctx, a.namespace)
		if err != nil {
			return err
		}
		return a.printProxies(proxies)
	}
	found, err := a.named(ctx, f, names)
	if len(found) > 0 {
		err = errors.Join(a.printProxies(found), err)
	}
	return err
}

// named returns the proxies that are there, and why the others could not be had.
func (a *app) named(ctx context.Context, f Fleet, names []string) (found []v1.Proxy, _ error) {
	var faults []error
	for _, name := range names {
		p, err := f.Get(ctx, a.namespace, name)
		if err != nil {
			faults = append(faults, fmt.Errorf("get %s/%s: %w", a.namespace, name, err))
			continue
		}
		found = append(found, p)
	}
	return found, errors.Join(faults...)
}

// some returns the named proxies that are there, or all for no name.
func (a *app) some(ctx context.Context, f Fleet, names []string) (found []v1.Proxy, _ error) {
	if len(names) == 0 {
		return f.List(ctx, a.namespace)
	}
	for _, name := range names {
		p, err := f.Get(ctx, a.namespace, name)
		switch {
		case errors.Is(err, fleet.ErrNotFound): // not yet, or not any more
		case err != nil:
			return nil, err
		default:
			found = append(found, p)
		}
	}
	return found, nil
}
