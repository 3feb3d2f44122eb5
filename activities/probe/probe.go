// Package probe finds out what a client would meet: TCP to the proxy, CONNECT, TLS
// verified to the target, one request. It imports api/v1 and the standard library, and
// knows no Temporal. Start reading at Prober.Probe; cause.go is the table of verdicts,
// judge.go the thresholds of a round, batch.go a round.
package probe

import (
	"context"
	"net"
	"time"

	v1 "github.com/egressfleet/egressfleet/api/v1"
)

// Limits bound one attempt. Each step has its own, and Total all of them together.
type Limits struct {
	Dial      time.Duration // TCP to the proxy
	Answer    time.Duration // from the request to the end of the answer's head
	Handshake time.Duration // TLS through the tunnel
	Request   time.Duration // one request, and its answer
	Total     time.Duration
}

// DefaultLimits let three attempts and two pauses end within 40 s of a round.
func DefaultLimits() Limits {
	return Limits{
		Dial: 3 * time.Second, Answer: 5 * time.Second, Handshake: 4 * time.Second,
		Request: 3 * time.Second, Total: 10 * time.Second,
	}
}

// Prober probes. Its zero value is ready, with the defaults.
type Prober struct {
	Limits     Limits     // zero: DefaultLimits
	Thresholds Thresholds // zero: DefaultThresholds
	// Concurrency is how many attempts of a batch are under way at once; 0: 200.
	Concurrency int
	// Dial connects; nil: a net.Dialer, which goes directly whatever HTTP_PROXY says.
	Dial func(ctx context.Context, network, address string) (net.Conn, error)
}

// Verdict is what a probe found out. Serialised: add fields, never rename one.
type Verdict struct {
	Reason string `json:"reason"` // one of the reasons of the condition Healthy
	Cause  Cause  `json:"cause,omitempty"`
	// Text has the facts in a line: status, error, duration, what to look at. It never
	// holds credentials or a body.
	Text string `json:"text"`
	// EgressIP is the address that the target saw, where it tells.
	EgressIP string        `json:"egressIP,omitempty"`
	Took     time.Duration `json:"took"`
}

// Passed reports whether the proxy did its work.
func (v Verdict) Passed() bool { return v.Reason == v1.ReasonHealthy }

// Failed reports whether somebody is to blame. A verdict that neither passed nor
// failed changes nothing.
func (v Verdict) Failed() bool { return BlameOf(v.Reason) != BlameNobody }

// Control is what the way to the target without a proxy showed.
type Control struct {
	Reached bool   `json:"reached"` // TCP, and TLS verified to the target
	Text    string `json:"text"`
}

// Probe tries the proxy once. Where the target may be behind a fault, it tries the
// target directly, too, before it blames the proxy. It returns within Limits.Total, or
// twice that with a control probe, and soon after ctx ends.
func (p *Prober) Probe(ctx context.Context, target Target, proxy Proxy) Verdict {
	f := p.attempt(ctx, target, proxy)
	var control Control
	if f.cause.Excused() {
		control = p.Control(ctx, target)
	}
	return settle(f, control)
}

// settle makes a verdict of what an attempt found and what the control probe saw. Pure.
func settle(f finding, control Control) Verdict {
	v := Verdict{Reason: reasonOf(f.cause, control.Reached), Cause: f.cause, Took: f.took, Text: f.text()}
	if f.egress.IsValid() {
		v.EgressIP = f.egress.String()
	}
	switch {
	case !f.cause.Excused():
	case control.Reached:
		v.Text = join(v.Text, "the target answers directly")
	default:
		v.Text = join(v.Text, "the target cannot be reached directly either: "+control.Text)
	}
	return v
}

// Control tries the target directly.
func (p *Prober) Control(ctx context.Context, target Target) Control {
	if target.IsZero() {
		return Control{Text: "no target"}
	}
	f := p.direct(ctx, target)
	return Control{Reached: f.cause == CauseNone, Text: f.facts()}
}

func (p *Prober) limits() Limits {
	if p.Limits == (Limits{}) {
		return DefaultLimits()
	}
	return p.Limits
}

func (p *Prober) dial(ctx context.Context, address string) (net.Conn, error) {
	ctx, cancel := context.WithTimeout(ctx, p.limits().Dial)
	defer cancel()
	if p.Dial != nil {
		return p.Dial(ctx, "tcp", address)
	}
	return new(net.Dialer).DialContext(ctx, "tcp", address)
}
