package main

import (
	"net/url"

	"github.com/egressfleet/egressfleet/workflows/proxy"
)

// workflowURL returns what says where the Web UI shows the workflow of a proxy; nil where
// nobody said where the Web UI is.
func (p *process) workflowURL() (func(namespace, name string) string, error) {
	if p.cfg.Temporal.UI == "" {
		return nil, nil //nolint:nilnil // no Web UI, and nothing wrong
	}
	server, err := p.cfg.Temporal.Server(p.opts.Environment, p.log)
	if err != nil {
		return nil, err
	}
	base := p.cfg.Temporal.UI + "/namespaces/" + url.PathEscape(server.Options.Namespace) + "/workflows/"
	return func(namespace, name string) string {
		return base + url.PathEscape(proxy.WorkflowID(namespace, name))
	}, nil
}
