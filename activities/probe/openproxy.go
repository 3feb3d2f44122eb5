package probe

import (
	"context"
	"fmt"
	"net/textproto"
	"strings"
	"sync"

	v1 "github.com/egressfleet/egressfleet/api/v1"
)

// smtpPort is what an open proxy is found for.
const smtpPort = 25

// Openness is the condition OpenProxy of a proxy. Serialised.
type Openness struct {
	Status v1.ConditionStatus `json:"status"`
	Reason string             `json:"reason,omitempty"`
	Text   string             `json:"text"`
}

// NoSecondProber is what is known of a proxy that nobody looks at from outside.
func NoSecondProber() Openness {
	c := v1.NoSecondProber()
	return Openness{Status: c.Status, Reason: c.Reason, Text: c.Message}
}

// access is what a stranger's request met.
type access string

const (
	accessGranted access = "granted" // tunnelled, or tried to
	accessDenied  access = "denied"
	accessAbsent  access = "absent"  // the stranger does not get as far as the proxy
	accessUnclear access = "unclear" // neither is proven
)

// OpenProxy asks the proxy for two tunnels that it must refuse to a stranger: an
// anonymous one to the target, and one to the target's port 25, so that nobody else's
// mail server is touched. Credentials of the proxy are not sent. It must be called
// where the prober's address is none that the proxy serves.
func (p *Prober) OpenProxy(ctx context.Context, target Target, proxy Proxy) Openness {
	return p.openness(ctx, target, proxy, func() Control { return p.Control(ctx, target) })
}

// OpenProxies is OpenProxy for every job, as many at once as Concurrency says, in the
// order of the jobs. Each distinct target is tried directly once. What is unfinished
// when ctx ends is Unknown.
func (p *Prober) OpenProxies(ctx context.Context, jobs []Job) []Openness {
	direct, slots := p.controls(ctx, jobs), make(chan struct{}, p.concurrency())
	found := make([]Openness, len(jobs))
	var group sync.WaitGroup
	for i, j := range jobs {
		group.Go(func() {
			slots <- struct{}{} // none is held for long: every step has its limit
			defer func() { <-slots }()
			found[i] = p.openness(ctx, j.Target, j.Proxy, direct[j.Target])
		})
	}
	group.Wait()
	return found
}

// openness is OpenProxy with a way to learn whether the target is reached directly,
// which is not always asked for.
func (p *Prober) openness(ctx context.Context, target Target, proxy Proxy, direct func() Control) Openness {
	if target.IsZero() {
		return Openness{Status: v1.ConditionUnknown, Reason: v1.ReasonNoTarget, Text: "no target is configured"}
	}
	anonymous := Proxy{Address: proxy.Address}
	mail := target
	mail.Port = smtpPort
	web, webText := p.knock(ctx, target, anonymous)
	smtp, smtpText := p.knock(ctx, mail, anonymous)
	control := Control{}
	if web == accessAbsent || smtp == accessAbsent {
		control = direct()
	}
	status, reason := judgeOpenness(web, smtp, control.Reached)
	return Openness{Status: status, Reason: reason, Text: fmt.Sprintf("%s: %s; %s: %s", web, webText, smtp, smtpText)}
}

// knock asks for a tunnel and sends nothing through it.
func (p *Prober) knock(ctx context.Context, target Target, proxy Proxy) (access, string) {
	var a answer
	f := p.timed(ctx, target, func(w *way) (f finding) {
		a, f = w.open(proxy)
		return f
	})
	return accessOf(f.cause, a), join("CONNECT "+target.Address(), f.facts())
}

// accessOf says what an attempt to open a tunnel proves about access. Pure.
func accessOf(c Cause, a answer) access {
	switch c {
	case CauseNone:
		return accessGranted
	case CauseTargetDNS, CauseTargetUnreachable:
		if tried(a.status, a.header) {
			return accessGranted
		}
		return accessUnclear
	case CauseAuthRequired, CauseDenied:
		return accessDenied
	case CauseNotListening, CauseNotReachable, CauseNoResponse:
		return accessAbsent
	default:
		return accessUnclear
	}
}

// tried: a proxy that reports how its own connection failed has let the stranger in. A
// 500 or 503 without a word more may as well be a proxy that is not well.
func tried(status int, header textproto.MIMEHeader) bool {
	page := header.Get(squidError)
	for _, own := range []string{"ERR_CONNECT_FAIL", "ERR_DNS_FAIL", "ERR_CANNOT_FORWARD"} {
		if strings.HasPrefix(page, own) {
			return true
		}
	}
	return status == 502 || status == 504 || isTinyproxy(header)
}

// judgeOpenness is the verdict on both tunnels; direct says whether the prober reaches the
// target without the proxy, so that being kept away proves something. Pure.
func judgeOpenness(web, smtp access, direct bool) (v1.ConditionStatus, string) {
	closed := func(a access) bool { return a == accessDenied || a == accessAbsent && direct }
	switch {
	case web == accessGranted || smtp == accessGranted:
		return v1.ConditionTrue, v1.ReasonOpenProxy
	case closed(web) && closed(smtp):
		return v1.ConditionFalse, v1.ReasonClosed
	default:
		return v1.ConditionUnknown, v1.ReasonInconclusive
	}
}
