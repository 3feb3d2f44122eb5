package main

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/spf13/cobra"

	v1 "github.com/egressfleet/egressfleet/api/v1"
)

func (a *app) applyCommand() *cobra.Command {
	var files []string
	cmd := &cobra.Command{
		Use: "apply -f FILE", Short: "Create proxies, or change them to what a file says",
		Example: "  starter apply -f docs/samples/proxies.yaml\n  starter apply -n crawl -f - < proxies.json",
		Args:    exactly(0),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if len(files) == 0 {
				return usagef("%s: -f FILE is required", cmd.CommandPath())
			}
			proxies, err := a.readFiles(files, cmd.Flags().Changed("namespace"))
			if err != nil {
				return err
			}
			return a.withFleet(cmd.Context(), func(ctx context.Context, f Fleet) error { return a.apply(ctx, f, proxies) })
		},
	}
	cmd.Flags().StringArrayVarP(&files, "filename", "f", nil,
		"file of Proxies in YAML or JSON, - for the standard input; may be repeated")
	return cmd
}

// readFiles reads every file before anything is applied.
func (a *app) readFiles(files []string, namespaceGiven bool) (all []v1.Proxy, _ error) {
	for _, file := range files {
		proxies, err := a.readFile(file)
		if err != nil {
			return nil, err
		}
		all = append(all, proxies...)
	}
	for _, p := range all {
		if namespaceGiven && p.Metadata.Namespace != a.namespace {
			return nil, usagef("metadata.namespace: %q of %q is not the namespace that -n names, %q",
				p.Metadata.Namespace, p.Metadata.Name, a.namespace)
		}
	}
	return all, nil
}

func (a *app) readFile(file string) ([]v1.Proxy, error) {
	if file == "-" {
		return DecodeProxies("standard input", a.In, a.namespace)
	}
	r, err := os.Open(file) //nolint:gosec // the operator names the file
	if err != nil {
		return nil, err
	}
	defer func() { _ = r.Close() }()
	return DecodeProxies(file, io.Reader(r), a.namespace)
}

// apply goes on after a failure, so that one bad Proxy holds up no other.
func (a *app) apply(ctx context.Context, f Fleet, proxies []v1.Proxy) error {
	var applied []v1.Proxy
	var faults []error
	for _, p := range proxies {
		name := p.Metadata.Namespace + "/" + p.Metadata.Name
		got, created, err := a.applyOne(ctx, f, p)
		if err != nil {
			faults = append(faults, fmt.Errorf("apply %s: %w", name, err))
			continue
		}
		applied = append(applied, got)
		if a.output == outputTable {
			faults = append(faults, a.print(name+" "+outcome(created)+"\n"))
		}
	}
	if a.output != outputTable {
		faults = append(faults, a.printProxies(applied))
	}
	return errors.Join(faults...)
}

// applyOne names its request, so that a repetition on the way has one effect.
func (a *app) applyOne(ctx context.Context, f Fleet, p v1.Proxy) (v1.Proxy, bool, error) {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	return f.Apply(ctx, p, rand.Text())
}

func outcome(created bool) string {
	if created {
		return "created"
	}
	return "applied"
}
