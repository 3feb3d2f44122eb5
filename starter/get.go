package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	v1 "github.com/egressfleet/egressfleet/api/v1"
)

func (a *app) getCommand() *cobra.Command {
	var everywhere bool
	cmd := &cobra.Command{
		Use: "get [NAME…]", Short: "List proxies", Args: cobra.ArbitraryArgs,
		RunE: func(cmd *cobra.Command, names []string) error {
			if everywhere && len(names) > 0 {
				return usagef("%s: -A takes no name", cmd.CommandPath())
			}
			if everywhere {
				a.namespace = ""
			}
			return a.withFleet(cmd.Context(), func(ctx context.Context, f Fleet) error { return a.get(ctx, f, names) })
		},
	}
	cmd.Flags().BoolVarP(&everywhere, "all-namespaces", "A", false, "list the proxies of every namespace")
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
	var found []v1.Proxy
	var faults []error
	for _, name := range names {
		p, err := f.Get(ctx, a.namespace, name)
		if err != nil {
			faults = append(faults, fmt.Errorf("get %s/%s: %w", a.namespace, name, err))
			continue
		}
		found = append(found, p)
	}
	if len(found) > 0 {
		faults = append(faults, a.printProxies(found))
	}
	return errors.Join(faults...)
}
