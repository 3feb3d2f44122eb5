package activities

import (
	"context"
	"fmt"
	"log/slog"
	"net"
	"strconv"

	"github.com/egressfleet/egressfleet/activities/probe"
	v1 "github.com/egressfleet/egressfleet/api/v1"
	"github.com/egressfleet/egressfleet/providers"
)

// Exposed is what the check for open proxies asks of the fleet. The fleet's client is
// one.
type Exposed interface {
	// Pages and Page are those of Probed.
	Pages(ctx context.Context, size int) ([][]byte, error)
	Page(ctx context.Context, size int, begins []byte) ([]v1.Proxy, error)
	// ReportOpenProxy tells a proxy what a stranger meets. One that is gone is no error.
	ReportOpenProxy(ctx context.Context, p v1.Proxy, o probe.Openness) error
}

// OpenProxies is the part of the check that is done where the providers are known.
type OpenProxies struct {
	Fleet    Exposed
	Names    func() []string // of the configured providers
	TargetOf func(provider string) probe.Target
	// Metrics may be nil.
	Metrics *OpenProxyMetrics
}

// Aim is what the proxies of a provider are asked for. Serialised.
type Aim struct {
	Address string `json:"address,omitempty"` // host:port; empty: nothing
	// Echo says that it is the fleet's own target, which only its certificate knows.
	Echo bool `json:"echo,omitempty"`
}

// OpenBatchSize is how many proxies one activity asks as a stranger. A page of them may
// all be open, and is then listed by name.
const OpenBatchSize = 200

// OpenProxyPlan is where the pages of a check begin, and what is asked for.
type OpenProxyPlan struct {
	Pages [][]byte `json:"pages,omitempty"`
	// Aims are by provider; "" is for those that are not configured any more.
	Aims map[string]Aim `json:"aims"`
}

// PlanOpenProxies says what the second prober has to do: it knows no provider itself.
func (o *OpenProxies) PlanOpenProxies(ctx context.Context) (OpenProxyPlan, error) {
	pages, err := o.Fleet.Pages(ctx, OpenBatchSize)
	if err != nil {
		return OpenProxyPlan{}, fmt.Errorf("listing the running proxies: %w", err)
	}
	plan := OpenProxyPlan{Pages: pages, Aims: map[string]Aim{"": aimOf(o.TargetOf(""))}}
	for _, name := range o.Names() {
		plan.Aims[name] = aimOf(o.TargetOf(name))
	}
	return plan, nil
}

// aimOf is a target without whom it trusts: only the echo target has roots of its own.
func aimOf(t probe.Target) Aim {
	if t.IsZero() {
		return Aim{}
	}
	return Aim{Address: t.Address(), Echo: t.Roots != nil}
}

// TellNoSecondProber tells the proxies of one page that nobody has looked from outside.
func (o *OpenProxies) TellNoSecondProber(ctx context.Context, begins []byte) (OpenProxyReport, error) {
	page, err := o.Fleet.Page(ctx, OpenBatchSize, begins)
	if err != nil {
		return OpenProxyReport{}, fmt.Errorf("listing the running proxies: %w", err)
	}
	r := OpenProxyReport{Counts: map[string]Openings{}}
	for _, p := range page {
		r.conclude(ctx, o.Fleet, p, probe.NoSecondProber())
	}
	return r, nil
}

// NoteOpenProxies shows a check in the metrics of this process.
func (o *OpenProxies) NoteOpenProxies(_ context.Context, n OpenProxyNote) error {
	o.Metrics.note(n)
	return nil
}

// Outside is the second prober. It runs where no client of the proxies is.
type Outside struct {
	Fleet  Exposed
	Prober *probe.Prober
	// Echo adds to the fleet's own target whom it is trusted by; nil where that is not
	// known here.
	Echo func(probe.Target) probe.Target
}

// OutsideBatch is one page of proxies, and what they are asked for.
type OutsideBatch struct {
	Begins []byte         `json:"begins,omitempty"`
	Aims   map[string]Aim `json:"aims"`
}

// Openings counts what strangers met at the proxies of a provider.
type Openings struct {
	Open    int `json:"open"`
	Closed  int `json:"closed"`
	Unknown int `json:"unknown"`
}

// OpenProxyReport is what one page came to.
type OpenProxyReport struct {
	Asked   int                 `json:"asked"`
	Counts  map[string]Openings `json:"counts,omitempty"` // by provider
	Open    []string            `json:"open,omitempty"`   // namespace/name
	Changed []OpenProxyChange   `json:"changed,omitempty"`
	Untold  int                 `json:"untold,omitempty"` // changes that could not be told; the next check does
}

// OpenProxyChange is a proxy whose condition is another one than before.
type OpenProxyChange struct {
	Proxy  string             `json:"proxy"`
	Status v1.ConditionStatus `json:"status"`
	Reason string             `json:"reason"`
	Text   string             `json:"text,omitempty"`
}

// AskAsStranger asks the proxies of one page for what they must refuse, and tells those
// whose answer is news. It runs on the queue of the second prober.
func (o *Outside) AskAsStranger(ctx context.Context, in OutsideBatch) (OpenProxyReport, error) {
	page, err := o.Fleet.Page(ctx, OpenBatchSize, in.Begins)
	if err != nil {
		return OpenProxyReport{}, fmt.Errorf("listing the running proxies: %w", err)
	}
	ctx, stop := beating(ctx)
	defer stop()
	within, cancel := withinAttempt(ctx)
	defer cancel()
	var proxies []v1.Proxy
	var jobs []probe.Job
	for _, p := range page {
		if p.Status.IP == "" {
			continue
		}
		address := net.JoinHostPort(p.Status.IP, strconv.Itoa(p.Spec.Port))
		proxies = append(proxies, p)
		jobs = append(jobs, probe.Job{Proxy: probe.Proxy{Address: address}, Target: o.target(in, p)})
	}
	r := OpenProxyReport{Counts: map[string]Openings{}}
	for i, found := range o.Prober.OpenProxies(within, jobs) {
		r.conclude(ctx, o.Fleet, proxies[i], found)
	}
	return r, nil
}

// target is what one proxy is asked for. One that cannot be read is none.
func (o *Outside) target(in OutsideBatch, p v1.Proxy) probe.Target {
	aim, configured := in.Aims[p.Spec.Provider]
	if !configured {
		aim = in.Aims[""]
	}
	if own := p.Spec.HealthCheck.Target; own != "" {
		aim = Aim{Address: own}
	}
	target, err := probe.ParseTarget(aim.Address)
	if err != nil {
		return probe.Target{}
	}
	if aim.Echo && o.Echo != nil {
		return o.Echo(target)
	}
	return target
}

// conclude counts what a proxy is called from now on, and tells it where that is news.
func (r *OpenProxyReport) conclude(ctx context.Context, fleet Exposed, p v1.Proxy, found probe.Openness) {
	shown, known := p.Status.Condition(v1.ConditionOpenProxy)
	if !known {
		shown = v1.NoSecondProber()
	}
	status, news := openFrom(shown, found)
	name := p.Metadata.Namespace + "/" + p.Metadata.Name
	r.count(p.Spec.Provider, name, status)
	if !news {
		return
	}
	if status == v1.ConditionTrue {
		providers.Logger(ctx).Warn("open proxy: it lets strangers in", slog.String("proxy", name),
			slog.String("provider", p.Spec.Provider), slog.String("address", p.Status.IP), slog.Int("port", p.Spec.Port),
			slog.String("found", found.Text))
	}
	if err := fleet.ReportOpenProxy(ctx, p, found); err != nil {
		r.Untold++
		return
	}
	r.Changed = append(r.Changed, OpenProxyChange{
		Proxy: name, Status: found.Status, Reason: found.Reason, Text: cutTo(found.Text, proofKept),
	})
}

func (r *OpenProxyReport) count(provider, name string, status v1.ConditionStatus) {
	r.Asked++
	n := r.Counts[provider]
	switch status {
	case v1.ConditionTrue:
		n.Open++
		r.Open = append(r.Open, name)
	case v1.ConditionFalse:
		n.Closed++
	case v1.ConditionUnknown:
		n.Unknown++
	}
	r.Counts[provider] = n
}

// openFrom is what a proxy is called after a look, and whether that is news. An alarm
// stands until a look finds the proxy closed: not to know is no all-clear. That it is
// closed is not said for longer than somebody knows it. It is pure.
func openFrom(shown v1.Condition, found probe.Openness) (status v1.ConditionStatus, news bool) {
	if shown.Status == v1.ConditionTrue && found.Status == v1.ConditionUnknown {
		return v1.ConditionTrue, false
	}
	return found.Status, shown.Status != found.Status || shown.Reason != found.Reason
}
