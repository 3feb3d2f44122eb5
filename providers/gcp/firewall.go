package gcp

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"slices"
	"strconv"
	"time"

	"cloud.google.com/go/compute/apiv1/computepb"
	"google.golang.org/protobuf/proto"

	"github.com/egressfleet/egressfleet/providers"
)

// ruleGrace is how long after its last change a port that no instance has stays open: a
// create opens it before its instance can be listed.
const ruleGrace = 10 * time.Minute

// ruleMarks are the description of a rule: rules have no labels.
type ruleMarks struct {
	Managed      string    `json:"proxy-operator-managed"`
	Installation string    `json:"proxy-operator-installation"`
	Provider     string    `json:"proxy-operator-provider"`
	Changed      time.Time `json:"changed"`
}

// ruleName is the same at every worker, and of no other provider.
func (p *Provider) ruleName() string {
	name := "egressfleet-" + p.installation + "-" + p.name
	if !resource.MatchString(name) {
		name = "egressfleet-" + asLabel(name+" ") // a digest: a blank is in no label
	}
	return name
}

// ours reports whether a rule is this provider's; another one is never touched.
func (p *Provider) ours(rule *computepb.Firewall) (m ruleMarks, ok bool) {
	_ = json.Unmarshal([]byte(rule.GetDescription()), &m) // what is no JSON has no marks
	return m, m.Managed == providers.MarkManagedYes && m.Installation == p.installation && m.Provider == p.name
}

// ruleFor is the rule as it should be, with ports.
func (p *Provider) ruleFor(ports []int) (*computepb.Firewall, error) {
	network, err := networkPath(p.set.Project, p.set.Network)
	if err != nil {
		return nil, permanent("network: %w", err)
	}
	marks, err := json.Marshal(ruleMarks{
		providers.MarkManagedYes, p.installation, p.name, p.now().UTC().Truncate(time.Second),
	})
	return &computepb.Firewall{
		Name: proto.String(p.ruleName()), Description: proto.String(string(marks)), Network: &network,
		Direction: proto.String("INGRESS"), SourceRanges: p.set.SourceRanges, TargetTags: []string{p.set.NetworkTag},
		Allowed: []*computepb.Allowed{{IPProtocol: proto.String("tcp"), Ports: texts(ports)}},
	}, err
}

func texts(ports []int) (out []string) {
	for _, port := range ports {
		out = append(out, strconv.Itoa(port))
	}
	return out
}

// portsOf are the ports that a rule opens, sorted; what is no single port was written by
// somebody else, and goes with the next change.
func portsOf(rule *computepb.Firewall) (ports []int) {
	for _, allowed := range rule.GetAllowed() {
		for _, text := range allowed.GetPorts() {
			if port, err := strconv.Atoi(text); err == nil {
				ports = append(ports, port)
			}
		}
	}
	slices.Sort(ports)
	return slices.Compact(ports)
}

// ruleChange is what has to be done to a rule.
type ruleChange int

const (
	ruleStays ruleChange = iota
	ruleInsert
	rulePatch
	ruleRemove
)

// decideRule decides over the ports that the rule should open. have is nil where there is
// no rule. shrink says that a port which is not wanted may be closed.
func decideRule(have *computepb.Firewall, want []int, shrink, sameRest bool) (ruleChange, []int) {
	if have == nil {
		if len(want) == 0 {
			return ruleStays, nil
		}
		return ruleInsert, want
	}
	open := portsOf(have)
	ports := want
	if !shrink {
		ports = slices.Compact(slices.Sorted(slices.Values(append(slices.Clone(open), want...))))
	}
	switch {
	case len(ports) == 0:
		return ruleRemove, nil
	case !slices.Equal(ports, open) || !sameRest:
		return rulePatch, ports
	}
	return ruleStays, ports
}

// sameRest reports whether a rule lets the configured ranges to the configured tag.
func (p *Provider) sameRest(rule *computepb.Firewall) bool {
	ranges := func(all []string) []string { return slices.Sorted(slices.Values(all)) }
	return slices.Equal(ranges(rule.GetSourceRanges()), ranges(p.set.SourceRanges)) &&
		slices.Equal(rule.GetTargetTags(), []string{p.set.NetworkTag}) && !rule.GetDisabled()
}

// open makes clients reach a port, where the firewall is managed: it returns once the
// rule says so. It is asked before an insert, so that nothing is made that nobody could
// reach, and after it, since by then another worker may have closed the port.
func (p *Provider) open(ctx context.Context, port int) error {
	if p.set.Firewall != firewallManaged {
		return nil
	}
	return p.pace.until(ctx, func() (bool, error) {
		return p.adjust(ctx, []int{port}, false)
	}, "the rule of the firewall was sent, and does not show the port yet")
}

// adjust looks at the rule and changes it, once. It is done when there was nothing to do.
func (p *Provider) adjust(ctx context.Context, want []int, shrink bool) (done bool, _ error) {
	have, err := p.ruleOf(ctx)
	if err != nil {
		return false, err
	}
	if have != nil {
		m, ok := p.ours(have)
		if !ok {
			return false, permanent("firewall: the rule %q is not this provider's, by its description", p.ruleName())
		}
		shrink = shrink && p.now().Sub(m.Changed) >= ruleGrace
	}
	do, ports := decideRule(have, want, shrink, have != nil && p.sameRest(have))
	if do == ruleStays {
		return true, nil
	}
	p.detail(ctx, "firewall changes", slog.String("rule", p.ruleName()), slog.Any("ports", ports))
	return false, p.change(ctx, do, ports)
}

// change sends what was decided. That another worker was first is seen at the next look.
func (p *Provider) change(ctx context.Context, do ruleChange, ports []int) error {
	if do == ruleRemove {
		return p.dropRule(ctx)
	}
	rule, err := p.ruleFor(ports)
	if err != nil {
		return err
	}
	if do == ruleInsert {
		err = p.api.insertRule(ctx, rule)
	} else {
		err = p.api.patchRule(ctx, rule)
	}
	if err != nil && (isTaken(err) || p.ruleMissing(err)) {
		return nil
	}
	return p.ruleError(err)
}

func (p *Provider) ruleError(err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("firewall: rule %s: %w", p.ruleName(), err)
}

func (p *Provider) ruleMissing(err error) bool {
	return classify(err, about{providers.OpGet, "global/firewalls/" + p.ruleName()}) == providers.ErrNotFound
}

// ruleOf returns the rule; nil when there is none.
func (p *Provider) ruleOf(ctx context.Context) (*computepb.Firewall, error) {
	rule, err := p.api.rule(ctx, p.ruleName())
	if err != nil && p.ruleMissing(err) {
		return nil, nil //nolint:nilnil // no rule is an answer
	}
	return rule, p.ruleError(err)
}

func (p *Provider) dropRule(ctx context.Context) error {
	if err := p.api.removeRule(ctx, p.ruleName()); err != nil && !p.ruleMissing(err) {
		return p.ruleError(err)
	}
	return nil
}
