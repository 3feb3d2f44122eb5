package gcp

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/egressfleet/egressfleet/providers"
)

// regions remembers which zones a region has: that changes once in years.
type regions struct {
	mu    sync.Mutex
	known map[string]regionZones
}

type regionZones struct {
	zones []string
	until time.Time
}

const regionsFor = time.Hour

func newRegions() *regions { return &regions{known: map[string]regionZones{}} }

// zonesOf returns the zones of a region, sorted.
func (p *Provider) zonesOf(ctx context.Context, region string) ([]string, error) {
	p.regions.mu.Lock()
	have, ok := p.regions.known[region]
	p.regions.mu.Unlock()
	if ok && p.now().Before(have.until) {
		return have.zones, nil
	}
	r, err := p.api.region(ctx, region)
	if err != nil {
		if classify(err, about{providers.OpGet, "regions/" + region}) == providers.ErrNotFound {
			return nil, permanent("placement.region: %q is not a region that the project has: %w", region, err)
		}
		return nil, err
	}
	var zones []string
	for _, link := range r.GetZones() {
		if zone := last(link); zoneForm.MatchString(zone) {
			zones = append(zones, zone)
		}
	}
	if len(zones) == 0 {
		return nil, permanent("placement.region: %q has no zone", region)
	}
	slices.Sort(zones)
	p.regions.mu.Lock()
	defer p.regions.mu.Unlock()
	p.regions.known[region] = regionZones{zones, p.now().Add(regionsFor)}
	return zones, nil
}
