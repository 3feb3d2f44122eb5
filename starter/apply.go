package main

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"

	"github.com/spf13/cobra"

	v1 "github.com/egressfleet/egressfleet/api/v1"
	"github.com/egressfleet/egressfleet/starter/fleet"
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
func (a *app) readFiles(files []string, namespaceGiven bool) ([]v1.Proxy, error) {
	var all []placed
	for _, file := range files {
		some, err := a.readFile(file)
		if err != nil {
			return nil, err
		}
		all = append(all, some...)
	}
	for _, p := range all {
		if namespaceGiven && p.Metadata.Namespace != a.namespace {
			return nil, usagef("metadata.namespace: %q of %q is not the namespace that -n names, %q",
				p.Metadata.Namespace, p.Metadata.Name, a.namespace)
		}
	}
	return proxiesOf(all), checkOnce(all)
}

func (a *app) readFile(file string) ([]placed, error) {
	if file == "-" {
		return decodePlaced("standard input", a.In, a.namespace)
	}
	r, err := os.Open(file) //nolint:gosec // the operator names the file
	if err != nil {
		return nil, err
	}
	defer func() { _ = r.Close() }()
	return decodePlaced(file, io.Reader(r), a.namespace)
}

// apply goes on after a failure, so that one bad Proxy holds up no other.
func (a *app) apply(ctx context.Context, f Fleet, proxies []v1.Proxy) error {
	var applied []v1.Proxy
	var faults []error
	for _, p := range proxies {
		name := p.Metadata.Namespace + "/" + p.Metadata.Name
		was := a.known(ctx, f, p.Metadata)
		got, created, err := a.applyOne(ctx, f, p)
		if err != nil {
			faults = append(faults, fmt.Errorf("apply %s: %w", name, err))
			continue
		}
		applied = append(applied, got)
		if a.forPeople() {
			faults = append(faults, a.print(name+" "+outcome(was, got, created)+"\n"))
		}
	}
	if !a.forPeople() {
		faults = append(faults, a.printProxies(applied))
	}
	return errors.Join(faults...)
}

// applyOne names its request, so that a repetition on the way has one effect.
func (a *app) applyOne(ctx context.Context, f Fleet, p v1.Proxy) (v1.Proxy, bool, error) {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	return f.Apply(ctx, p, fleet.Request{ID: rand.Text()})
}

// known returns the Proxy that is there; the zero one where none is, or none can be read.
func (a *app) known(ctx context.Context, f Fleet, m v1.Metadata) v1.Proxy {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	p, err := f.Get(ctx, m.Namespace, m.Name)
	if err != nil {
		return v1.Proxy{}
	}
	return p
}

// outcome says what an apply did. The generation counts the changes of the spec.
func outcome(was, is v1.Proxy, created bool) string {
	switch {
	case created:
		return "created"
	case was.Metadata.UID == is.Metadata.UID && was.Metadata.Generation == is.Metadata.Generation &&
		maps.Equal(was.Metadata.Labels, is.Metadata.Labels):
		return "unchanged"
	default:
		return "applied"
	}
}
