package gcp

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"

	"cloud.google.com/go/compute/apiv1/computepb"
	"google.golang.org/api/googleapi"

	"github.com/egressfleet/egressfleet/providers"
)

// ReasonZoneDown is this provider's own: Compute Engine itself says that a zone is not up.
const ReasonZoneDown = "ZoneDown"

// Check asks for the project, by the call that lists, and for each configured zone, all
// at once. It asks for one page and one object each.
func (p *Provider) Check(ctx context.Context) []providers.TargetStatus {
	out := make([]providers.TargetStatus, 1+len(p.set.Zones))
	var asked sync.WaitGroup
	asked.Go(func() { out[0] = p.checkProject(ctx) })
	for i, zone := range p.set.Zones {
		asked.Go(func() { out[i+1] = p.checkZone(ctx, zone) })
	}
	asked.Wait()
	p.logger(ctx).LogAttrs(ctx, providers.LevelOutcome, "gcp "+opCheck, slog.Int("targets", len(out)))
	return out
}

func (p *Provider) checkProject(ctx context.Context) providers.TargetStatus {
	target := "projects/" + p.set.Project
	if ctx.Err() != nil {
		return status(target, context.Cause(ctx))
	}
	if _, err := p.api.instances(ctx, p.filter(), 1); err != nil {
		return status(target, err)
	}
	s := status(target, nil)
	if project, err := p.api.project(ctx); err == nil { // it may be a right that nothing else needs
		s.Details, s.Left = headroom(project.GetQuotas(), "CPUS_ALL_REGIONS", "FIREWALLS", "IN_USE_ADDRESSES")
	}
	return p.allowed(ctx, s)
}

func (p *Provider) checkZone(ctx context.Context, zone string) providers.TargetStatus {
	target := "zones/" + zone
	if ctx.Err() != nil {
		return status(target, context.Cause(ctx))
	}
	z, err := p.api.zone(ctx, zone)
	if err != nil {
		return status(target, err)
	}
	region, err := p.api.region(ctx, regionOf(zone))
	if err != nil {
		return status(target, err)
	}
	s := status(target, nil)
	if z.GetStatus() != "UP" {
		s = providers.TargetStatus{Target: target, Reason: ReasonZoneDown, Message: "the zone is " + z.GetStatus()}
	}
	s.Details, s.Left = headroom(region.GetQuotas(),
		"CPUS", "PREEMPTIBLE_CPUS", "INSTANCES", "IN_USE_ADDRESSES", "DISKS_TOTAL_GB")
	if p.full.out(zone, p.now()) {
		s.Details["stockout"] = "no capacity was left lately"
	}
	return s
}

// headroom is what is left of some quotas, such as {"CPUS": "18 of 24 left"}, for people
// and for metrics.
func headroom(quotas []*computepb.Quota, metrics ...string) (told map[string]string, left map[string]float64) {
	told, left = map[string]string{}, map[string]float64{}
	for _, q := range quotas {
		if name := q.GetMetric(); slices.Contains(metrics, name) {
			left[name] = max(0, q.GetLimit()-q.GetUsage())
			told[name] = fmt.Sprintf("%g of %g left", left[name], q.GetLimit())
		}
	}
	return told, left
}

// allowed tells which of the rights that a create and the rest need are missing. Where it
// cannot be asked, which is another API's to switch on, that is told and no more.
func (p *Provider) allowed(ctx context.Context, s providers.TargetStatus) providers.TargetStatus {
	need := p.set.needed()
	have, err := p.api.granted(ctx, need)
	if err != nil {
		s.Details["permissions"] = "not tested: " + err.Error()
		return s
	}
	missing := slices.DeleteFunc(need, func(one string) bool { return slices.Contains(have, one) })
	if len(missing) > 0 {
		s.Ready, s.Reason = false, providers.ReasonForbidden
		s.Message = "missing on the project: " + strings.Join(missing, ", ")
	}
	return s
}

// status tells why a target cannot be used.
func status(target string, err error) providers.TargetStatus {
	s := providers.TargetStatus{Target: target, Ready: err == nil, Reason: reasonOf(err), Details: map[string]string{}}
	if err != nil {
		s.Message = err.Error()
	}
	return s
}

// reasonOf is the word for an error that an administrator acts on.
func reasonOf(err error) string {
	if err == nil {
		return providers.ReasonReachable
	}
	if errors.Is(err, context.DeadlineExceeded) || errors.Is(err, context.Canceled) || errors.Is(err, errSlow) {
		return providers.ReasonTimeout
	}
	if e, ok := errors.AsType[*googleapi.Error](err); ok {
		switch {
		case e.Code == http.StatusUnauthorized:
			return providers.ReasonUnauthorized
		case e.Code == http.StatusForbidden && classify(err, about{op: opCheck}) == providers.ErrPermanent:
			return providers.ReasonForbidden
		}
		return providers.ReasonAPIError
	}
	if _, ok := errors.AsType[*noCredential](err); ok {
		return providers.ReasonUnauthorized
	}
	_, network := errors.AsType[net.Error](err)
	if _, wrapped := errors.AsType[*url.Error](err); network || wrapped {
		return providers.ReasonUnreachable
	}
	return providers.ReasonAPIError
}
