package activities

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strconv"
	"time"

	"go.temporal.io/sdk/activity"

	"github.com/egressfleet/egressfleet/activities/probe"
	v1 "github.com/egressfleet/egressfleet/api/v1"
)

// BatchSize is how many proxies one activity probes. Each batch is up to six events and
// an action, every minute: larger ones make a round cheaper. All of one that hang are
// tried three times, some at once, within the attempt.
const BatchSize = 500

// candidatesKept bounds the lines of a batch: changes, and proxies to be replaced.
const candidatesKept = 200

// Health probes proxies.
type Health struct {
	Instances *Instances
	Fleet     Probed
	Prober    *probe.Prober
	// TargetOf returns what proxies of a provider are asked for; the zero one where
	// nothing is configured.
	TargetOf func(provider string) probe.Target
	// Metrics may be nil.
	Metrics *HealthMetrics
}

// Probed is what a health round asks of the fleet. The worker makes one of the fleet's client.
type Probed interface {
	// Pages returns what each page of the running proxies begins with, so many on each.
	// The first one begins with nothing.
	Pages(ctx context.Context, size int) ([][]byte, error)
	// Page returns the proxies of one page.
	Page(ctx context.Context, size int, begins []byte) ([]v1.Proxy, error)
	// Report tells a proxy what was found. One that is gone is no error.
	Report(ctx context.Context, p v1.Proxy, r HealthReport) error
	// Busy returns how many proxies of a provider have no running instance now.
	Busy(ctx context.Context, provider string) (int, error)
	// Replace asks for another instance in the place of the one that was probed, once for
	// each request. asked is false where it is not there any more, which is no error.
	Replace(ctx context.Context, f Failing, reason, request string) (asked bool, err error)
}

// HealthReport is what a proxy is told.
type HealthReport struct {
	Healthy   bool
	Undecided bool // nothing speaks for or against it: only the reason is news
	Reason    string
	Message   string
	EgressIP  string
}

// Tally counts what a round made of a provider's proxies.
type Tally = probe.Tally

// BatchReport is what one batch came to.
type BatchReport struct {
	Probed   int              `json:"probed"`
	Tallies  map[string]Tally `json:"tallies,omitempty"` // by provider
	Reasons  map[string]int   `json:"reasons,omitempty"`
	Changed  []Change         `json:"changed,omitempty"`
	Failing  []Failing        `json:"failing,omitempty"` // and to be replaced, if all is well with the rest
	Unlisted int              `json:"unlisted,omitempty"`
	Untold   int              `json:"untold,omitempty"` // changes that could not be told; the next round does
}

// Change is a proxy whose verdict is another one than before.
type Change struct {
	Proxy   string `json:"proxy"`
	Healthy bool   `json:"healthy"`
	Reason  string `json:"reason"`
	Text    string `json:"text,omitempty"`
}

// Failing is a proxy that has been unhealthy for as long as its spec allows.
type Failing struct {
	Provider  string    `json:"provider"`
	Namespace string    `json:"namespace"`
	Name      string    `json:"name"`
	UID       string    `json:"uid"`
	MadeAt    time.Time `json:"madeAt,omitzero"` // its instance
	Reason    string    `json:"reason"`
	Since     time.Time `json:"since"`
}

// HealthPages says where the batches of a round begin.
func (h *Health) HealthPages(ctx context.Context) ([][]byte, error) {
	return h.Fleet.Pages(ctx, BatchSize)
}

// ProbeBatch probes one page of the running proxies, and tells those whose verdict has
// changed.
func (h *Health) ProbeBatch(ctx context.Context, begins []byte) (BatchReport, error) {
	page, err := h.Fleet.Page(ctx, BatchSize, begins)
	if err != nil {
		return BatchReport{}, fmt.Errorf("listing the running proxies: %w", err)
	}
	ctx, cancel := withinAttempt(ctx)
	defer cancel()
	report := BatchReport{Tallies: map[string]Tally{}, Reasons: map[string]int{}}
	proxies, jobs, faults := h.jobs(page)
	rulings := h.Prober.Batch(ctx, jobs, sparing(time.Now, func(done, total int) {
		activity.RecordHeartbeat(ctx, fmt.Sprintf("%d of %d", done, total))
	}))
	for i, p := range proxies {
		h.conclude(ctx, &report, p, withFault(rulings[i], faults[i]))
	}
	return report, nil
}

// sparing keeps progress to itself for one beat: what ends sooner needs no heartbeat, and
// each is an action.
func sparing(now func() time.Time, tell func(done, total int)) func(done, total int) {
	began := now()
	return func(done, total int) {
		if now().Sub(began) >= beat {
			tell(done, total)
		}
	}
}

// jobs are what there is to probe. A fault of ours takes the place of a verdict.
func (h *Health) jobs(page []v1.Proxy) (proxies []v1.Proxy, jobs []probe.Job, faults []error) {
	for _, p := range page {
		if p.Spec.HealthCheck.Disabled || p.Status.IP == "" {
			continue
		}
		job, err := h.job(p)
		proxies, jobs, faults = append(proxies, p), append(jobs, job), append(faults, err)
	}
	return proxies, jobs, faults
}

func (h *Health) job(p v1.Proxy) (probe.Job, error) {
	job := probe.Job{
		Proxy:  probe.Proxy{Address: net.JoinHostPort(p.Status.IP, strconv.Itoa(p.Spec.Port))},
		Target: h.TargetOf(p.Spec.Provider), Before: healthOf(p),
	}
	if own := p.Spec.HealthCheck.Target; own != "" {
		target, err := probe.ParseTarget(own)
		if err != nil {
			return probe.Job{Before: job.Before}, fmt.Errorf("spec.healthCheck.target: %w", err)
		}
		job.Target = target
	}
	ref := p.Spec.HealthCheck.ProxyAuthRef
	if ref == nil {
		return job, nil
	}
	content, err := h.Instances.readSecret(p.Spec.Provider, *ref)
	if err == nil {
		job.Proxy.Credentials, err = probe.ParseCredentials(string(content))
	}
	if err != nil {
		return probe.Job{Before: job.Before}, fmt.Errorf("spec.healthCheck.proxyAuthRef: %w", err)
	}
	return job, nil
}

// withFault says that nothing is known about a proxy because of a fault of ours.
func withFault(r probe.Ruling, fault error) probe.Ruling {
	if fault == nil {
		return r
	}
	r.Changed = false
	r.Verdict = probe.Verdict{Reason: v1.ReasonInconclusive, Text: cutTo(fault.Error(), messageKept)}
	return r
}

func healthOf(p v1.Proxy) probe.Health {
	switch healthy := p.Status.Healthy; {
	case healthy == nil:
		return probe.HealthUnknown
	case *healthy:
		return probe.HealthHealthy
	default:
		return probe.HealthUnhealthy
	}
}

// conclude counts a ruling, tells the proxy where it is news, and notes it where the
// proxy may have to be replaced.
func (h *Health) conclude(ctx context.Context, r *BatchReport, p v1.Proxy, ruling probe.Ruling) {
	r.Probed++
	r.Reasons[ruling.Verdict.Reason]++
	tally := r.Tallies[p.Spec.Provider]
	tally.Add(ruling)
	r.Tallies[p.Spec.Provider] = tally
	if report, news := newsFor(p, ruling, time.Now()); news {
		r.tell(ctx, h.Fleet, p, report)
	}
	if since, overdue := overdueSince(p, ruling, time.Now()); overdue && len(r.Failing) < candidatesKept {
		r.Failing = append(r.Failing, Failing{
			Provider: p.Spec.Provider, Namespace: p.Metadata.Namespace, Name: p.Metadata.Name,
			UID: p.Metadata.UID, MadeAt: p.Status.InstanceCreatedAt,
			Reason: ruling.Verdict.Reason, Since: since,
		})
	}
}

func (r *BatchReport) tell(ctx context.Context, fleet Probed, p v1.Proxy, report HealthReport) {
	if err := fleet.Report(ctx, p, report); err != nil {
		r.Untold++
		return
	}
	if len(r.Changed) >= candidatesKept {
		r.Unlisted++
		return
	}
	r.Changed = append(r.Changed, Change{
		Proxy: p.Metadata.Namespace + "/" + p.Metadata.Name, Healthy: report.Healthy, Reason: report.Reason,
		Text: cutTo(report.Message, proofKept),
	})
}

// Replacement asks for the replacement of failing proxies of one provider.
type Replacement struct {
	Provider string    `json:"provider"`
	Failing  []Failing `json:"failing"` // the longest first
	Budget   int       `json:"budget"`  // so many at a time
	Round    string    `json:"round"`   // names the request
}

// Replaced says which were asked for.
type Replaced struct {
	Asked []string `json:"asked,omitempty"`
	Busy  int      `json:"busy"` // proxies of the provider that have no running instance
}

// ReplaceFailing asks for as many replacements as the budget allows, and those that are
// under way leave of it.
func (h *Health) ReplaceFailing(ctx context.Context, in Replacement) (out Replaced, err error) {
	out.Busy, err = h.Fleet.Busy(ctx, in.Provider)
	if err != nil {
		return out, err
	}
	var faults []error
	for _, f := range in.Failing {
		if len(out.Asked) >= in.Budget-out.Busy {
			break
		}
		reason := fmt.Sprintf("unhealthy (%s) since %s", f.Reason, f.Since.UTC().Format(time.RFC3339))
		asked, err := h.Fleet.Replace(ctx, f, reason, in.Round)
		if err != nil { // one that cannot be asked does not keep the others waiting
			faults = append(faults, fmt.Errorf("%s/%s: %w", f.Namespace, f.Name, err))
		}
		if asked {
			out.Asked = append(out.Asked, f.Namespace+"/"+f.Name)
		}
	}
	if len(out.Asked) > 0 {
		return out, nil // the others come again with the next round
	}
	return out, errors.Join(faults...)
}

// NoteHealth shows what a round came to. It is an activity because metrics are of this
// process.
func (h *Health) NoteHealth(_ context.Context, providers []ProviderHealthNote) error {
	for _, n := range providers {
		h.Metrics.note(n)
	}
	return nil
}

// ProviderHealthNote is a provider's part of a round.
type ProviderHealthNote struct {
	Provider string `json:"provider"`
	Tally    Tally  `json:"tally"`
	Breaker  bool   `json:"breaker"`
	Replaced int    `json:"replaced,omitempty"`
}
