package main

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"maps"

	"github.com/spf13/cobra"

	v1 "github.com/egressfleet/egressfleet/api/v1"
	"github.com/egressfleet/egressfleet/starter/fleet"
)

const applyHelp = `Create proxies, or change them to what files say.

A file holds any number of Proxies: documents of YAML, values of JSON, or what
"get -o yaml" and "get -o json" print. Of a folder, each file counts whose name ends in
.yaml, .yml or .json and does not begin with a dot, in the order of the names; with -R
the folders in it, too. Everything is read before anything is applied, and a Proxy that
is there twice is refused, whichever files it is in.

--dry-run asks for nothing: it says what apply would do, with the difference between what
is there and what is wanted. User-data is never shown; what stands for it is its digest.`

type applyOptions struct {
	files             []string
	recursive, dryRun bool
}

func (a *app) applyCommand() *cobra.Command {
	var o applyOptions
	cmd := &cobra.Command{
		Use: "apply -f FILE", Short: "Create proxies, or change them to what files say", Long: applyHelp,
		Example: "  starter apply -f docs/samples/proxies.yaml\n  starter apply -f proxies/ -R --dry-run\n" +
			"  starter apply -n crawl -f - < proxies.json",
		Args: exactly(0),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if len(o.files) == 0 {
				return usagef("%s: -f FILE is required", cmd.CommandPath())
			}
			proxies, err := a.readFiles(o, cmd.Flags().Changed("namespace"))
			if err != nil {
				return err
			}
			return a.withFleet(cmd.Context(), func(ctx context.Context, f Fleet) error {
				if o.dryRun {
					return a.rehearse(ctx, f, proxies)
				}
				return a.apply(ctx, f, proxies)
			})
		},
	}
	flags := cmd.Flags()
	flags.StringArrayVarP(&o.files, "filename", "f", nil,
		"file or folder of Proxies in YAML or JSON, - for the standard input; may be repeated")
	flags.BoolVarP(&o.recursive, "recursive", "R", false, "of a folder, the folders in it, too")
	flags.BoolVar(&o.dryRun, "dry-run", false, "only show what would change")
	return cmd
}

// apply goes on after a failure, so that one bad Proxy holds up no other.
func (a *app) apply(ctx context.Context, f Fleet, proxies []v1.Proxy) error {
	var applied []v1.Proxy
	var faults []error
	for i, p := range proxies {
		name := p.Metadata.Namespace + "/" + p.Metadata.Name
		a.step("applying %s, %d of %d", name, i+1, len(proxies))
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
