package gcefake

import (
	"fmt"
	"slices"

	"cloud.google.com/go/compute/apiv1/computepb"
	"google.golang.org/protobuf/proto"
)

// quotaKey is a metric of a region, or of the project where the region is "".
type quotaKey struct{ project, region, metric string }

// usualLimits are those of a new project, roughly.
// https://cloud.google.com/compute/resource-usage
func usualLimits() map[string]float64 {
	return map[string]float64{
		"CPUS": 2400, "INSTANCES": 6000, "IN_USE_ADDRESSES": 2300, "DISKS_TOTAL_GB": 102400,
	}
}

// SetQuota changes a limit of a region, or of the project where the region is "".
func (s *Server) SetQuota(project, region, metric string, limit float64) {
	s.enter()
	defer s.mu.Unlock()
	s.world.limits[quotaKey{project, region, metric}] = limit
}

func (s *Server) limit(project, region, metric string) float64 {
	if l, ok := s.world.limits[quotaKey{project, region, metric}]; ok {
		return l
	}
	return usualLimits()[metric]
}

// usage counts what the instances of a region use. Those that are stopped have no CPUs
// and no ephemeral address, and count as instances.
// https://cloud.google.com/compute/resource-usage
func (s *Server) usage(project, region, metric string) (used float64) {
	if metric == "DISKS_TOTAL_GB" {
		return s.diskUsage(project, region)
	}
	for k, i := range s.world.instances {
		zone, _ := cutScope(k.scope, "zones/")
		if k.project == project && (region == "" || regionOf(zone) == region) {
			used += s.uses(i, metric)
		}
	}
	return used
}

// diskUsage counts disks, those that no instance has, too.
func (s *Server) diskUsage(project, region string) (used float64) {
	for k, d := range s.world.disks {
		zone, _ := cutScope(k.scope, "zones/")
		if k.project == project && (region == "" || regionOf(zone) == region) {
			used += float64(d.msg.GetSizeGb())
		}
	}
	return used
}

func (s *Server) uses(i *instance, metric string) float64 {
	stopped := i.is(Terminated, Stopped, Suspended)
	switch {
	case metric == "INSTANCES":
		return 1
	case metric == "CPUS" && !stopped:
		return float64(s.world.machines[base(i.msg.GetMachineType())])
	case metric == "IN_USE_ADDRESSES" && !stopped:
		n := 0
		for _, nic := range i.msg.GetNetworkInterfaces() {
			n += len(nic.GetAccessConfigs())
		}
		return float64(n)
	case metric == "DISKS_TOTAL_GB":
		n := int64(0)
		for _, d := range i.msg.GetDisks() {
			n += d.GetDiskSizeGb()
		}
		return float64(n)
	}
	return 0
}

// overQuota says what an insert fails with when a limit of its region would be passed:
// late, in the words of case gcp-op-quota.
func (c *call) overQuota(i *instance) *Failure {
	region := regionOf(c.zone())
	for _, metric := range metrics() {
		limit := c.limit(c.project, region, metric)
		if c.usage(c.project, region, metric)+c.uses(i, metric) <= limit {
			continue
		}
		f := Failed("op-quota", c.project, c.zone(), c.name)
		f.Error = &computepb.Error{Errors: []*computepb.Errors{{
			Code:    proto.String("QUOTA_EXCEEDED"),
			Message: proto.String(fmt.Sprintf("Quota '%s' exceeded.  Limit: %.1f in region %s.", metric, limit, region)),
		}}}
		return &f
	}
	return nil
}

func metrics() []string {
	var names []string
	for metric := range usualLimits() {
		names = append(names, metric)
	}
	slices.Sort(names)
	return names
}

// quotas are as regions.get and projects.get show them.
func (s *Server) quotas(project, region string) []*computepb.Quota {
	var out []*computepb.Quota
	for _, metric := range metrics() {
		out = append(out, &computepb.Quota{
			Metric: proto.String(metric), Limit: proto.Float64(s.limit(project, region, metric)),
			Usage: proto.Float64(s.usage(project, region, metric)),
		})
	}
	return out
}
