package main

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	v1 "github.com/egressfleet/egressfleet/api/v1"
)

func (a *app) providersCommand() *cobra.Command {
	var at apiAddress
	cmd := &cobra.Command{
		Use: "providers", Short: "List what is configured, and whether the providers file is served", Args: exactly(0),
		RunE: func(cmd *cobra.Command, _ []string) error {
			defer a.slowly("waiting for the API to answer")()
			list, err := at.askProviders(cmd.Context())
			if err != nil {
				return err
			}
			return a.printProviders(list)
		},
	}
	at.flags(cmd.Flags())
	return cmd
}

// askProviders asks the API: what a process has read is known to itself only.
func (at apiAddress) askProviders(ctx context.Context) (list v1.ProviderList, err error) {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	api, err := at.open()
	if err != nil {
		return list, err
	}
	res, err := api.ListProviders(ctx)
	if err != nil {
		return list, at.unreachable(err)
	}
	defer func() { _ = res.Body.Close() }()
	return list, at.read(res, &list)
}

func (a *app) printProviders(list v1.ProviderList) error {
	return a.printOr(list, providerTable(a.view(), list))
}

// verdict is the outcome of a check in a word or two.
func verdict(c *v1.ProviderCheck) string {
	switch {
	case c == nil:
		return "not yet"
	case !c.Supported:
		return "unsupported"
	}
	ready := 0
	for _, t := range c.Targets {
		if t.Ready {
			ready++
		}
	}
	return fmt.Sprintf("%d of %d ready", ready, len(c.Targets)+c.Unlisted)
}

// providerTable shows one provider a line, and under them whether they are what the
// file says.
func providerTable(v view, list v1.ProviderList) string {
	rows, targets := [][]string{{"NAME", "TYPE", "AGE", "CHECK"}}, targetHeader()
	for _, p := range list.Items {
		rows = append(rows, []string{p.Name, p.Type, age(v.now, p.LoadedAt), verdict(p.Check)})
		if p.Check != nil && p.Check.Supported {
			targets = append(targets, targetRows(p.Name, *p.Check, v.now)...)
		}
	}
	text := "no providers\n"
	if len(list.Items) > 0 {
		text = v.Table("", rows)
	}
	if len(targets) > 1 {
		text += "\n" + v.Table("", targets)
	}
	if list.Checks.Error != "" {
		text += "\nchecks: " + oneLine(list.Checks.Error) + "\n"
	}
	switch c := list.Configuration; c.State {
	case v1.ConfigurationLoaded:
		return text
	case v1.ConfigurationRetained:
		return text + fmt.Sprintf("\n%s cannot be used for %s, these are from %s before that: %s\n",
			c.File, age(v.now, c.Since), age(c.Since, c.LoadedAt), oneLine(c.Error))
	default:
		return text + fmt.Sprintf("\n%s cannot be used for %s, and never could: %s\n",
			c.File, age(v.now, c.Since), oneLine(c.Error))
	}
}
