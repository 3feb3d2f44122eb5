package proxy

import (
	"go.temporal.io/sdk/workflow"

	v1 "github.com/egressfleet/egressfleet/api/v1"
)

// HealthReport is signalled when the verdict about a proxy changes.
type HealthReport struct {
	Healthy  bool   `json:"healthy"`
	Reason   string `json:"reason"` // a verdict
	Message  string `json:"message,omitempty"`
	EgressIP string `json:"egressIP,omitempty"` // as the target saw it
	// IP and Of are the address and the instance that were probed, where the sender says
	// so: a verdict about the instance before is none about this one.
	IP string  `json:"ip,omitempty"`
	Of Subject `json:"of,omitzero"`
	// Undecided says that nothing speaks for or against the proxy. It only gives a reason
	// why nothing is known.
	Undecided bool `json:"undecided,omitempty"`
}

// Hint is signalled by whoever noticed something; the entity looks for itself.
// Renew asks for a new run, which brings new code in; a latch goes along.
// ProviderChanged says that the configuration of the proxy's provider is another one:
// it releases what waits for that, and is a plain hint to every other proxy.
type Hint struct {
	Reason          string `json:"reason,omitempty"`
	Renew           bool   `json:"renew,omitempty"`
	ProviderChanged bool   `json:"providerChanged,omitempty"`
	// Secret says that the content of its secretRef is not what it was.
	Secret bool `json:"secret,omitempty"`
}

// OpenProxyReport is signalled when what a stranger meets at a proxy changes.
type OpenProxyReport struct {
	Status  v1.ConditionStatus `json:"status"` // True: it lets strangers in
	Reason  string             `json:"reason"`
	Message string             `json:"message,omitempty"`
	IP      string             `json:"ip,omitempty"` // that was asked, as in HealthReport
}

// mailbox is everything that reaches a run without a handler: the signals, and a
// request to cancel. Nothing blocks on it: a receiver that is parked in another
// coroutine may hold a signal while the run continues as new, and lose it.
type mailbox struct {
	ctx                  workflow.Context // the run's own, which a cancel reaches
	delete, health, hint workflow.ReceiveChannel
	openProxy            workflow.ReceiveChannel
}

func newMailbox(ctx workflow.Context) mailbox {
	return mailbox{
		ctx:    ctx,
		delete: workflow.GetSignalChannel(ctx, SignalDelete),
		health: workflow.GetSignalChannel(ctx, SignalHealth),
		hint:   workflow.GetSignalChannel(ctx, SignalHint),

		openProxy: workflow.GetSignalChannel(ctx, SignalOpenProxy),
	}
}

// leaving reports whether a delete has arrived that is not taken yet. It takes nothing, so
// that a validator may ask.
func (m mailbox) leaving() bool { return m.delete.Len() > 0 || m.ctx.Err() != nil }

// takeMail handles what has arrived, without blocking. The waits call it from their
// conditions.
func (e *entity) takeMail() {
	taken := take(e.mail.delete, e.onDelete) + take(e.mail.health, e.onHealth) + take(e.mail.hint, e.onHint) +
		take(e.mail.openProxy, e.onOpenProxy)
	e.state.Messages += taken
	if e.mail.ctx.Err() != nil {
		e.requestDelete(e.mail.ctx, DeleteInput{Reason: "cancelled"})
	}
}

// take empties a channel. A payload that does not decode is dropped by the SDK.
func take[T any](ch workflow.ReceiveChannel, do func(T)) (taken int64) {
	for {
		var m T
		if !ch.ReceiveAsync(&m) {
			return taken
		}
		do(m)
		taken++
	}
}

// onDelete cannot refuse: without a reason, nothing is left behind.
func (e *entity) onDelete(in DeleteInput) {
	in.SkipCleanup = e.validateDelete(in) == nil && in.SkipCleanup
	e.requestDelete(e.mail.ctx, in)
}

// onHealth takes a verdict over; it changes nothing at the backend. One about an
// instance that is no longer there is dropped.
func (e *entity) onHealth(r HealthReport) {
	s := &e.state.Status
	if s.ProviderID == "" || e.version >= versionDeadlines && !r.about(e.uid, *s) {
		return
	}
	r.Undecided = r.Undecided && e.version >= versionDeadlines
	r.Reason, r.Message, r.EgressIP = brief(r.Reason, wordKept), brief(r.Message, textKept), brief(r.EgressIP, wordKept)
	c := r.condition()
	was, _ := s.Condition(v1.ConditionHealthy)
	at := workflow.Now(e.mail.ctx)
	if was.Status == c.Status { // another reason does not begin it anew
		at = was.LastTransitionTime
	}
	s.SetCondition(at, c)
	e.dirty, e.state.Undecided = true, r.Undecided
	if !r.Undecided {
		s.Healthy = &r.Healthy
	}
	e.state.EverHealthy = e.state.EverHealthy || r.Healthy
	if r.EgressIP != "" {
		s.EgressIP = r.EgressIP
	}
	if was.Status != c.Status || was.Reason != r.Reason && r.Undecided {
		e.note(e.mail.ctx, r.Reason, "", r.Message)
	}
}

func (r HealthReport) condition() v1.Condition {
	c := v1.Condition{Type: v1.ConditionHealthy, Status: v1.ConditionFalse, Reason: r.Reason, Message: r.Message}
	switch {
	case r.Healthy:
		c.Status = v1.ConditionTrue
	case r.Undecided:
		c.Status = v1.ConditionUnknown
	}
	return c
}

// about reports whether a verdict is one about what is there now, and says anything new.
func (r HealthReport) about(uid string, is v1.ProxyStatus) bool {
	here := (r.IP == "" || r.IP == is.IP) && r.Of.isOf(uid, is)
	return here && (!r.Undecided || is.Healthy == nil)
}

// onOpenProxy takes over what a stranger meets; it changes nothing at the backend, and
// nothing in discovery. In a run of before, the history may have been written by code
// that did not know the signal.
func (e *entity) onOpenProxy(r OpenProxyReport) {
	s := &e.state.Status
	if e.version < versionOpenProxy || s.ProviderID == "" || r.IP != "" && r.IP != s.IP {
		return
	}
	c := v1.Condition{
		Type: v1.ConditionOpenProxy, Status: v1.ConditionUnknown,
		Reason: brief(r.Reason, wordKept), Message: brief(r.Message, textKept),
	}
	if r.Status == v1.ConditionTrue || r.Status == v1.ConditionFalse {
		c.Status = r.Status
	}
	was, _ := s.Condition(v1.ConditionOpenProxy)
	s.SetCondition(workflow.Now(e.mail.ctx), c)
	e.dirty = true
	if was.Reason != c.Reason {
		e.note(e.mail.ctx, c.Reason, "", c.Message)
	}
}

// onHint wakes the entity, unless it waits after a failure: a hint shortens no
// back-off, and releases nothing but what waits for another configuration.
func (e *entity) onHint(h Hint) {
	e.renew = e.renew || h.Renew
	e.state.SecretStale = e.state.SecretStale || h.Secret && e.version >= versionDeadlines
	if h.ProviderChanged && e.version >= versionRelease && e.state.latched() {
		e.state.Makes = 0 // another configuration may make instances that stay
		e.wake(e.mail.ctx, "ProviderChanged", h.Reason)
		return
	}
	e.woken = e.woken || !e.state.Patient
}

// requestDelete is where update, signal and cancel meet. The intent is final, and
// shown before the backend is asked: nobody is handed the proxy any more.
func (e *entity) requestDelete(ctx workflow.Context, in DeleteInput) {
	now, reason := workflow.Now(ctx), brief(in.Reason, textKept)
	if in.SkipCleanup && e.state.SkipCleanup == "" && e.version >= versionDeadlines {
		e.state.SkipCleanup = reason
		e.wake(ctx, "SkipCleanupRequested", reason)
	}
	if e.state.Deleting {
		return
	}
	e.state.Deleting, e.state.Began, e.state.Overdue = true, now, ""
	e.state.Status.Phase, e.state.Status.Since = v1.PhaseDeleting, now
	e.state.Status.SetCondition(now, v1.Condition{
		Type: v1.ConditionDeleting, Status: v1.ConditionTrue, Reason: v1.ReasonInProgress, Message: reason,
	})
	e.wake(ctx, "DeleteRequested", reason)
}
