package gcp

import (
	"context"
	"fmt"
	"io"
	"iter"
	"log/slog"
	"maps"
	"slices"
	"time"

	"github.com/egressfleet/egressfleet/providers"
)

// Type is the kind of provider, as the configuration names it.
const Type = "gcp"

var (
	_ providers.Provider     = (*Provider)(nil)
	_ providers.Inventorier  = (*Provider)(nil)
	_ providers.Checker      = (*Provider)(nil)
	_ providers.Profiler     = (*Provider)(nil)
	_ providers.Credentialed = (*Provider)(nil)
	_ io.Closer              = (*Provider)(nil)
)

// Provider keeps instances in one project. What it remembers only spares calls: two
// values with one configuration, in one process or in two, see the same.
type Provider struct {
	name         string
	installation string
	set          settings
	api          engine
	full         *stockouts
	settled      *settled
	regions      *regions
	pace         pace
	now          func() time.Time
}

// pace is how long Create and Delete look after what they sent.
type pace struct {
	first, most time.Duration // between two looks
	total       time.Duration
}

// usual bounds a look to what a task of Compute Engine takes until a read sees it; what
// takes longer is tried again by the caller.
var usual = pace{first: 200 * time.Millisecond, most: 2 * time.Second, total: 20 * time.Second}

// New returns the provider that is configured under a name. It calls nothing; its errors
// are about the configuration, and name the key and the value.
func New(ctx context.Context, name, installation string, cfg Config) (*Provider, error) {
	for key, value := range map[string]string{"name": name, "installation": installation} {
		if !resource.MatchString(asLabel(value)) || value == "" {
			return nil, fmt.Errorf("%s: %q is not a DNS label", key, value)
		}
	}
	set, err := cfg.resolve()
	if err != nil {
		return nil, err
	}
	if err := checkKey(set.CredentialsFile); err != nil {
		return nil, err
	}
	api, err := newRest(ctx, set)
	if err != nil {
		return nil, err
	}
	if set.InsecureNoAuthentication {
		providers.Logger(ctx).LogAttrs(ctx, slog.LevelWarn, "gcp sends no credential",
			slog.String("provider", name), slog.String("endpoint", set.Endpoint))
	}
	return &Provider{
		name: name, installation: installation, set: set, api: api,
		full: newStockouts(set.memory), settled: newSettled(), regions: newRegions(),
		pace: usual, now: time.Now,
	}, nil
}

// checkKey refuses a credential file whose content cannot be right, so that the provider
// before goes on. One that is not there yet may come.
func checkKey(path string) error {
	if path == "" {
		return nil
	}
	content, err := readKey(path)
	if err != nil {
		return nil //nolint:nilerr // the registry warns of it, and the call reads it again
	}
	if _, err := parseKey(content, nil); err != nil {
		return fmt.Errorf("credentialsFile: %q %w", path, err)
	}
	return nil
}

// CredentialFiles is the configured file. Application default credentials are found by
// Google's library, which says nothing of where.
func (p *Provider) CredentialFiles() []string {
	if p.set.CredentialsFile == "" {
		return nil
	}
	return []string{p.set.CredentialsFile}
}

// Close ends the connections.
func (p *Provider) Close() error {
	p.api.close()
	return nil
}

// fail classifies an error and writes the one line about it.
func (p *Provider) fail(ctx context.Context, of about, id string, err error) error {
	class := classify(err, of)
	if of.op == providers.OpCreate && class == providers.ErrNotFound {
		class = providers.ErrTransient // what was there a moment ago
	}
	p.logger(ctx).LogAttrs(ctx, providers.LevelOutcome, "gcp "+of.op+" failed",
		slog.String("providerID", id), slog.String("class", string(class)), slog.String("error", err.Error()))
	return providers.Wrap(class, of.op, p.name, id, err)
}

func (p *Provider) report(ctx context.Context, op, id string, attrs ...slog.Attr) {
	attrs = append(attrs, slog.String("providerID", id))
	p.logger(ctx).LogAttrs(ctx, providers.LevelOutcome, "gcp "+op, attrs...)
}

func (p *Provider) detail(ctx context.Context, what string, attrs ...slog.Attr) {
	p.logger(ctx).LogAttrs(ctx, providers.LevelDetail, "gcp "+what, attrs...)
}

func (p *Provider) logger(ctx context.Context) *slog.Logger {
	return providers.Logger(ctx).With(slog.String("provider", p.name))
}

// sorted gives the entries of a map in the order of their keys.
func sorted(m map[string]string) iter.Seq2[string, string] {
	return func(yield func(string, string) bool) {
		for _, key := range slices.Sorted(maps.Keys(m)) {
			if !yield(key, m[key]) {
				return
			}
		}
	}
}
