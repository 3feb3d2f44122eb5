package fleet

import (
	"context"
	"fmt"

	"go.temporal.io/api/enums/v1"
	"go.temporal.io/api/serviceerror"
	"go.temporal.io/sdk/client"

	v1 "github.com/egressfleet/egressfleet/api/v1"
	"github.com/egressfleet/egressfleet/workflows/adoption"
	"github.com/egressfleet/egressfleet/workflows/proxy"
)

// Marked is an instance as its marks tell of it.
type Marked struct {
	Provider, ID, UID, Owner, SpecMark string
	// Orphan takes it over also where a workflow of its owner has ended.
	Orphan bool
}

// Adoption is the workflow that brings proxies back. It has no schedule: only a person
// knows that a database was lost.
func Adoption() Schedule {
	return Schedule{
		ID: adoption.WorkflowID, Workflow: adoption.WorkflowType, Within: adoption.Within,
		Summary: "adopt the instances that no proxy owns any more",
	}
}

// FromMarks returns the proxy that an instance's marks tell of, with the UID of the
// instance and without the content of its user-data. An error names the mark that cannot
// be read. It asks nobody.
func FromMarks(m Marked) (v1.Proxy, error) {
	p, _, err := m.proxy()
	return p, err
}

// Adopt starts the proxy that an instance's marks tell of. It takes over the instance and
// its UID, and looks at it before it does anything else. Errors: *ConflictError where a
// workflow of that name is there, ErrUnavailable, or what FromMarks says.
func (c *Client) Adopt(ctx context.Context, m Marked) error {
	p, in, err := m.proxy()
	if err != nil {
		return err
	}
	p.Metadata.UID = "" // the workflow itself publishes it: one that never began proves nothing
	reuse := enums.WORKFLOW_ID_REUSE_POLICY_REJECT_DUPLICATE
	if m.Orphan {
		reuse = enums.WORKFLOW_ID_REUSE_POLICY_ALLOW_DUPLICATE
	}
	_, err = c.temporal.ExecuteWorkflow(ctx, client.StartWorkflowOptions{
		ID: proxy.WorkflowID(p.Metadata.Namespace, p.Metadata.Name), TaskQueue: c.taskQueue,
		WorkflowIDConflictPolicy: enums.WORKFLOW_ID_CONFLICT_POLICY_FAIL, WorkflowIDReusePolicy: reuse,
		WorkflowExecutionErrorWhenAlreadyStarted: true,
		StaticSummary:                            fmt.Sprintf("proxy %s on %s, adopted", m.Owner, m.Provider),
		Memo:                                     map[string]any{proxy.MemoProxy: pending(p)},
	}, proxy.WorkflowType, in)
	if isAny[*serviceerror.WorkflowExecutionAlreadyStarted](err) {
		return &ConflictError{Field: "owner mark", Value: m.Owner, Problem: "has a workflow by now"}
	}
	return translate(err)
}

func (m Marked) proxy() (v1.Proxy, proxy.Input, error) {
	namespace, name, two := v1.NamesOf(m.Owner)
	if !two {
		return v1.Proxy{}, proxy.Input{}, fmt.Errorf("owner mark: %.80q is not <namespace>/<name> of two DNS labels", m.Owner)
	}
	in, err := proxy.FromMark(m.Provider, m.UID, m.ID, m.SpecMark)
	return v1.Proxy{Metadata: v1.Metadata{Namespace: namespace, Name: name, UID: m.UID}, Spec: in.Spec}, in, err
}
