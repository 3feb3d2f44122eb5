package fleet

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"go.temporal.io/api/workflowservice/v1"

	v1 "github.com/egressfleet/egressfleet/api/v1"
	"github.com/egressfleet/egressfleet/workflows/proxy"
)

// probed is the query for the proxies that a health round probes.
func probed() string { return fmt.Sprintf("%s AND ProxyPhase = '%s'", running(""), v1.PhaseRunning) }

// part is a range of the proxies in order of namespace and name: what is on a page. It is
// given to an activity, and any worker can tell what belongs to it.
type part struct {
	From string `json:"from,omitempty"` // the first; empty: from the beginning
	To   string `json:"to,omitempty"`   // the first one after it; empty: to the end
}

// named begins what a part is on the wire. No page token of Temporal does.
const named = "names:"

func (p part) encode() []byte {
	raw, _ := json.Marshal(p) //nolint:errchkjson // two strings
	return append([]byte(named), raw...)
}

// partOf reads what Pages returned. A worker of before planned with tokens of Visibility.
func partOf(begins []byte) (p part, ok bool) {
	raw, ok := bytes.CutPrefix(begins, []byte(named))
	return p, ok && json.Unmarshal(raw, &p) == nil
}

func (p part) has(of v1.Proxy) bool {
	key := keyOf(of)
	return key >= p.From && (p.To == "" || key < p.To)
}

// keyOf is in order as inOrder is: no name has a byte below the one between the two.
func keyOf(p v1.Proxy) string { return p.Metadata.Namespace + "\x00" + p.Metadata.Name }

// Pages returns what each page of the running proxies is, so many on each.
func (c *Client) Pages(ctx context.Context, size int) (pages [][]byte, err error) {
	var from string
	on := 0
	err = c.eachProbed(ctx, func(p v1.Proxy) {
		if on == size {
			to := keyOf(p)
			pages, from, on = append(pages, part{from, to}.encode()), to, 0
		}
		on++
	})
	if on > 0 {
		pages = append(pages, part{From: from}.encode())
	}
	return pages, err
}

// Page returns the proxies of one page. One that cannot be read is left out.
func (c *Client) Page(ctx context.Context, size int, begins []byte) (proxies []v1.Proxy, err error) {
	of, ok := partOf(begins)
	if !ok {
		return c.pageAt(ctx, size, begins)
	}
	err = c.eachProbed(ctx, func(p v1.Proxy) {
		if of.has(p) {
			proxies = append(proxies, p)
		}
	})
	return proxies, err
}

// eachProbed tells the running proxies in order. Following them costs no listing of them
// all; where they cannot be followed, such as for a memo that has no key, those are listed
// that can be shown.
func (c *Client) eachProbed(ctx context.Context, do func(v1.Proxy)) error {
	living, err := c.Follow(ctx)
	all := living.Proxies
	if err != nil {
		if all, err = c.allShown(ctx, probed()); err != nil {
			return err
		}
		all = once(all)
	}
	for _, p := range all {
		if p.Status.Phase == v1.PhaseRunning {
			do(p)
		}
	}
	return nil
}

// pageAt returns what a page of Visibility has.
func (c *Client) pageAt(ctx context.Context, size int, token []byte) (proxies []v1.Proxy, err error) {
	page, err := c.page(ctx, probed(), size, token)
	if err != nil {
		return nil, err
	}
	for _, info := range page.GetExecutions() {
		if p, err := c.shown(info); err == nil {
			proxies = append(proxies, p)
		}
	}
	return proxies, nil
}

// Busy returns how many proxies of a provider have no running instance now, as
// Visibility counts.
func (c *Client) Busy(ctx context.Context, provider string) (int, error) {
	if !v1.IsName(provider) {
		return 0, &v1.FieldError{Field: "provider", Value: provider, Problem: "is not a DNS label"}
	}
	n, err := c.temporal.CountWorkflow(ctx, &workflowservice.CountWorkflowExecutionsRequest{
		Query: fmt.Sprintf("%s AND ProxyProvider = '%s' AND ProxyPhase IN ('%s', '%s', '%s')", running(""), provider,
			v1.PhasePending, v1.PhaseProvisioning, v1.PhaseReplacing),
	})
	return int(n.GetCount()), translate(err)
}

// Report tells a proxy a verdict. One that is gone is no error.
func (c *Client) Report(ctx context.Context, p v1.Proxy, r proxy.HealthReport) error {
	r.IP, r.Of = p.Status.IP, proxy.SubjectOf(p)
	return c.signal(ctx, p, proxy.SignalHealth, r)
}

// ReportOpenProxy tells a proxy what a stranger meets. One that is gone is no error.
func (c *Client) ReportOpenProxy(ctx context.Context, p v1.Proxy, r proxy.OpenProxyReport) error {
	r.IP = p.Status.IP
	return c.signal(ctx, p, proxy.SignalOpenProxy, r)
}

func (c *Client) signal(ctx context.Context, p v1.Proxy, name string, arg any) error {
	id := proxy.WorkflowID(p.Metadata.Namespace, p.Metadata.Name)
	err := translate(c.temporal.SignalWorkflow(ctx, id, "", name, arg))
	if errors.Is(err, ErrNotFound) {
		return nil
	}
	return err
}
