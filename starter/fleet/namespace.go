package fleet

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"go.temporal.io/api/enums/v1"
	"go.temporal.io/api/operatorservice/v1"
	"go.temporal.io/api/serviceerror"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/client"

	"github.com/egressfleet/egressfleet/workflows/installation"
	"github.com/egressfleet/egressfleet/workflows/proxy"
)

// EnsureSearchAttributes makes the namespace know the search attributes of proxies.
// Repeating it changes nothing. Where it may not, or one has another type, its error
// has the command that a person can run.
func (c *Client) EnsureSearchAttributes(ctx context.Context, namespace string) error {
	op := c.temporal.OperatorService()
	have, err := op.ListSearchAttributes(ctx, &operatorservice.ListSearchAttributesRequest{Namespace: namespace})
	switch {
	case isAny[*serviceerror.PermissionDenied](err), isAny[*serviceerror.Unimplemented](err):
		return c.findSearchAttributes(ctx, namespace, err)
	case err != nil:
		return attributesHint(namespace, wanted(), translate(err))
	}
	missing := map[string]enums.IndexedValueType{}
	for name, kind := range wanted() {
		switch is, known := have.GetCustomAttributes()[name]; {
		case !known:
			missing[name] = kind
		case is != kind:
			return fmt.Errorf("search attribute %s of namespace %q is %s, and must be %s", name, namespace, is, kind)
		}
	}
	if len(missing) == 0 {
		return nil
	}
	_, err = op.AddSearchAttributes(ctx, &operatorservice.AddSearchAttributesRequest{
		Namespace: namespace, SearchAttributes: missing,
	})
	if _, exists := errors.AsType[*serviceerror.AlreadyExists](err); err == nil || exists {
		return nil
	}
	return attributesHint(namespace, missing, translate(err))
}

// findSearchAttributes asks for proxies by them: Temporal Cloud serves no operator's
// calls, and elsewhere a client may lack the right to make them. It tells whether each
// is there, and not of which type it is. The refusal is what its error has.
func (c *Client) findSearchAttributes(ctx context.Context, namespace string, refusal error) error {
	var terms []string
	for _, key := range proxy.SearchAttributes() {
		terms = append(terms, key.GetName()+" IS NOT NULL")
	}
	_, err := c.temporal.CountWorkflow(ctx, &workflowservice.CountWorkflowExecutionsRequest{
		Namespace: namespace, Query: strings.Join(terms, " AND "),
	})
	switch {
	case isAny[*serviceerror.InvalidArgument](err):
		return attributesHint(namespace, wanted(), errors.Join(translate(refusal), err))
	case err != nil:
		return attributesHint(namespace, wanted(), translate(err))
	default:
		return nil
	}
}

func wanted() map[string]enums.IndexedValueType {
	all := map[string]enums.IndexedValueType{}
	for _, key := range proxy.SearchAttributes() {
		all[key.GetName()] = key.GetValueType()
	}
	return all
}

func attributesHint(namespace string, missing map[string]enums.IndexedValueType, err error) error {
	var b strings.Builder
	fmt.Fprintf(&b, "temporal operator search-attribute create --namespace %s", namespace)
	for _, key := range proxy.SearchAttributes() {
		if kind, ok := missing[key.GetName()]; ok {
			fmt.Fprintf(&b, " --name %s --type %s", key.GetName(), kind)
		}
	}
	return fmt.Errorf("registering the search attributes: %w; run: %s", err, b.String())
}

// EnsureInstallation starts the birth record of the installation if there is none. A
// namespace of Temporal belongs to one installation: the record of another one is an
// error.
func (c *Client) EnsureInstallation(ctx context.Context) error {
	if err := c.refuseOther(ctx); err != nil {
		return err
	}
	_, err := c.temporal.ExecuteWorkflow(ctx, client.StartWorkflowOptions{
		ID: installation.WorkflowID(c.installation), TaskQueue: c.taskQueue,
		WorkflowIDConflictPolicy: enums.WORKFLOW_ID_CONFLICT_POLICY_USE_EXISTING,
		StaticSummary:            "birth record of installation " + c.installation,
	}, installation.WorkflowType)
	if err != nil {
		return fmt.Errorf("starting the birth record of installation %q: %w", c.installation, translate(err))
	}
	return nil
}

func (c *Client) refuseOther(ctx context.Context) error {
	page, err := c.temporal.ListWorkflow(ctx, &workflowservice.ListWorkflowExecutionsRequest{
		Query: fmt.Sprintf("WorkflowType = '%s' AND ExecutionStatus = 'Running'", installation.WorkflowType),
	})
	if err != nil {
		return fmt.Errorf("looking for other installations: %w", translate(err))
	}
	for _, info := range page.GetExecutions() {
		id := info.GetExecution().GetWorkflowId()
		if other, err := installation.NameOf(id); err == nil && other != c.installation {
			return fmt.Errorf("installation: %q: this Temporal namespace belongs to installation %q (workflow %s)",
				c.installation, other, id)
		}
	}
	return nil
}
