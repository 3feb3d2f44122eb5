package fleet

import (
	"context"
	"errors"
	"fmt"

	"go.temporal.io/api/workflowservice/v1"

	v1 "github.com/egressfleet/egressfleet/api/v1"
	"github.com/egressfleet/egressfleet/workflows/proxy"
)

// probed is the query for the proxies that a health round probes.
func probed() string { return fmt.Sprintf("%s AND ProxyPhase = '%s'", running(""), v1.PhaseRunning) }

// Pages returns what each page of the running proxies begins with, so many on each.
func (c *Client) Pages(ctx context.Context, size int) (pages [][]byte, err error) {
	var next []byte
	for {
		page, err := c.page(ctx, probed(), size, next)
		if err != nil {
			return nil, err
		}
		if len(page.GetExecutions()) > 0 {
			pages = append(pages, next)
		}
		if next = page.GetNextPageToken(); len(next) == 0 {
			return pages, nil
		}
	}
}

// Page returns the proxies of one page. One that cannot be read is left out.
func (c *Client) Page(ctx context.Context, size int, begins []byte) (proxies []v1.Proxy, err error) {
	page, err := c.page(ctx, probed(), size, begins)
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
