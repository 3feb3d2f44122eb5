package proxy

import (
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"

	v1 "github.com/egressfleet/egressfleet/api/v1"
)

// note adds one line to the timeline, and to the worker's log.
func (e *entity) note(ctx workflow.Context, reason, class, detail string) {
	ev := v1.Event{
		At: workflow.Now(ctx), Phase: e.state.Status.Phase, Reason: reason, Class: class, Detail: brief(detail, detailKept),
	}
	e.state.note(ev)
	workflow.GetLogger(ctx).Info("proxy changed",
		"proxy", e.namespace+"/"+e.name, "provider", e.state.Spec.Provider, "providerID", e.state.Status.ProviderID,
		"phase", string(ev.Phase), "reason", ev.Reason, "class", ev.Class, "detail", ev.Detail)
}

// proxy is the Proxy as everybody may see it.
func (e *entity) proxy() v1.Proxy {
	s := e.state
	return v1.Proxy{
		Metadata: v1.Metadata{
			Namespace: e.namespace, Name: e.name, UID: e.uid, Generation: s.Generation,
			Labels: s.Labels, CreatedAt: s.CreatedAt,
		},
		Spec: s.Spec.Redacted(), Status: s.Status,
	}
}

// publish shows the proxy in the memo and the search attributes, once per real
// change and not once per round: each upsert is an event.
func (e *entity) publish(ctx workflow.Context) {
	e.dirty = false
	p := e.proxy()
	workflow.SetCurrentDetails(ctx, details(p))
	raw, err := json.Marshal(p)
	if err != nil || v1.Digest(raw) == e.state.Published && !e.undated() {
		return
	}
	if v1.Digest(raw) != e.state.Published {
		e.state.Published = v1.Digest(raw)
		if err := workflow.UpsertMemo(ctx, map[string]any{MemoProxy: p}); err != nil {
			workflow.GetLogger(ctx).Error("publishing the memo", "error", err)
		}
	}
	updates := e.updates(ctx, searchable(p, e.state.reason()))
	if len(updates) == 0 {
		return
	}
	if err := workflow.UpsertTypedSearchAttributes(ctx, updates...); err != nil {
		workflow.GetLogger(ctx).Error("publishing the search attributes", "error", err)
	}
}

// updates are the search attributes that say something new.
func (e *entity) updates(ctx workflow.Context, found attributes) (all []temporal.SearchAttributeUpdate) {
	if found != e.state.Searchable {
		e.state.Searchable = found
		all = found.updates()
	}
	if e.version < versionChanged {
		return all
	}
	e.changed = changedAt(workflow.Now(ctx), workflow.GetInfo(ctx).WorkflowStartTime, e.changed)
	return append(all, attrChanged.ValueSet(e.changed))
}

// undated reports whether the run has not said yet when it published. The attribute of
// the run before is still there then, and may be followed by changes that a worker of
// before does not date: so every run begins with a time of its own.
func (e *entity) undated() bool { return e.version >= versionChanged && e.changed.IsZero() }

// details is what a person reads first in the Web UI, as Markdown.
func details(p v1.Proxy) string {
	var b strings.Builder
	fmt.Fprintf(&b, "**%s** on `%s`", p.Status.Phase, p.Spec.Provider)
	if p.Status.IP != "" {
		fmt.Fprintf(&b, " at `%s` port %d", p.Status.IP, p.Spec.Port)
	}
	if !p.Status.Since.IsZero() {
		fmt.Fprintf(&b, ", since %s", p.Status.Since.UTC().Format(time.RFC3339))
	}
	b.WriteString("\n")
	for _, c := range p.Status.Conditions {
		fmt.Fprintf(&b, "\n- %s: **%s** (%s)", c.Type, c.Status, c.Reason)
		if c.Message != "" {
			fmt.Fprintf(&b, ": %s", c.Message)
		}
	}
	return b.String()
}

// attributes are the searchable part of a proxy. Serialised.
type attributes struct {
	Phase    string `json:"phase,omitempty"`
	Provider string `json:"provider,omitempty"`
	Region   string `json:"region,omitempty"`
	Reason   string `json:"reason,omitempty"`
	Healthy  bool   `json:"healthy,omitempty"`
}

func searchable(p v1.Proxy, reason string) attributes {
	_, usable := v1.EndpointOf(p)
	return attributes{
		Phase: string(p.Status.Phase), Provider: p.Spec.Provider, Region: p.Spec.Placement.Region,
		Reason: reason, Healthy: usable,
	}
}

func (a attributes) updates() []temporal.SearchAttributeUpdate {
	return []temporal.SearchAttributeUpdate{
		attrPhase.ValueSet(a.Phase), attrProvider.ValueSet(a.Provider), attrRegion.ValueSet(a.Region),
		attrReason.ValueSet(a.Reason), attrHealthy.ValueSet(a.Healthy),
	}
}
