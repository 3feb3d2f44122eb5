package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"time"

	"github.com/egressfleet/egressfleet/providers"
	"github.com/egressfleet/egressfleet/providers/all"
	"github.com/egressfleet/egressfleet/providers/registry"
)

// cleanLimit is for deleting every instance.
const cleanLimit = 2 * time.Minute

// devClean removes the instances through their provider, and then the state. Where
// nothing is, there is nothing to do.
func (a *app) devClean(ctx context.Context, s devSettings) error {
	if err := refuseForeign(s.dir); err != nil {
		return err
	}
	home, err := lockHome(s.dir)
	if errors.Is(err, fs.ErrNotExist) {
		return a.print("nothing to clean: there is no " + s.dir + "\n")
	}
	if err != nil {
		return err
	}
	defer home.close()
	ctx, cancel := context.WithTimeout(ctx, cleanLimit)
	defer cancel()
	deleted, err := deleteInstances(ctx, s, home)
	if err != nil {
		return fmt.Errorf("%w; the state in %s stays", err, s.dir)
	}
	left, err := home.remove()
	if err != nil {
		return err
	}
	text := fmt.Sprintf("removed %d instances and the state in %s\n", deleted, s.dir)
	if left {
		text += "the directory stays: it holds files that no run has made\n"
	}
	return a.print(text)
}

// deleteInstances asks the provider of the directory for its instances and deletes
// each, until none is left.
func deleteInstances(ctx context.Context, s devSettings, home *devHome) (int, error) {
	if _, err := os.Stat(home.path(instancesDir)); errors.Is(err, fs.ErrNotExist) {
		return 0, nil
	}
	set, err := devProviders(ctx, s, home)
	if err != nil {
		return 0, err
	}
	defer func() { _ = set.Close() }()
	deleted := 0
	for _, name := range set.Names() {
		p, _ := set.Lookup(name)
		n, err := deleteAll(ctx, p)
		deleted += n
		if err != nil {
			return deleted, err
		}
	}
	return deleted, nil
}

// devProviders builds the providers of a run from the file that the run wrote, anew
// where a run was cut off before it did.
func devProviders(ctx context.Context, s devSettings, home *devHome) (*registry.Set, error) {
	if err := s.writeConfig(home); err != nil {
		return nil, err
	}
	entries, err := registry.LoadFile(home.path(providersFile))
	if err != nil {
		return nil, err
	}
	return registry.Build(ctx, registry.Options{
		Installation: devInstallation, Entries: entries, Factories: all.Factories(),
	})
}

// deleteAll deletes what a provider lists, and returns once it lists nothing.
func deleteAll(ctx context.Context, p providers.Provider) (deleted int, _ error) {
	first := true
	err := until(ctx, func(ctx context.Context) error {
		list, err := p.ListByTag(ctx)
		if err != nil {
			return err
		}
		if first {
			deleted, first = len(list), false
		}
		for _, instance := range list {
			if err := p.Delete(ctx, instance.ID); err != nil {
				return err
			}
		}
		if len(list) > 0 {
			return fmt.Errorf("%d instances are still there", len(list))
		}
		return nil
	})
	return deleted, err
}
