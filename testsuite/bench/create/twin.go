package create

import (
	"context"
	"errors"
	"fmt"
	"time"

	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/worker"
	"go.temporal.io/sdk/workflow"

	v1 "github.com/egressfleet/egressfleet/api/v1"
	"github.com/egressfleet/egressfleet/testsuite/bench/stage"
	"github.com/egressfleet/egressfleet/workflows/proxy"
)

// The names of the twin on the wire.
const (
	twinQueue    = "bench-twin"
	twinType     = "Twin"
	plainType    = "Plain"
	twinActivity = "Nothing"
	twinTimeout  = time.Minute
	// twinBeat is that of a proxy's activities: a task that the server loses is given out
	// again after it.
	twinBeat = 20 * time.Second
)

// What the twin does on its way to Running, and from the delete to its end. check
// compares it with what a proxy does.
var (
	twinCreate = steps{Activities: 2, Memos: 3, Attributes: 3}
	twinDelete = steps{Activities: 3, Memos: 3, Attributes: 3}
)

// serveTwin serves the twin and the plain workflow until stop is called.
func serveTwin(temporal client.Client, o worker.Options) (stop func(), err error) {
	w := worker.New(temporal, twinQueue, o)
	w.RegisterWorkflowWithOptions(twin, workflow.RegisterOptions{Name: twinType})
	w.RegisterWorkflowWithOptions(plain, workflow.RegisterOptions{Name: plainType})
	w.RegisterActivityWithOptions(nothing, activity.RegisterOptions{Name: twinActivity})
	return w.Stop, w.Start()
}

// plain is one activity.
func plain(ctx workflow.Context) error { return act(ctx, v1.Proxy{}) }

// twin is the least that does as much as a proxy does: it decides nothing and remembers
// nothing.
func twin(ctx workflow.Context, p v1.Proxy) error {
	leaving := false
	err := errors.Join(
		workflow.SetUpdateHandler(ctx, proxy.UpdateApply,
			func(_ workflow.Context, in v1.Proxy) (v1.Proxy, error) { return in, nil }),
		workflow.SetUpdateHandler(ctx, proxy.UpdateDelete,
			func(workflow.Context) (v1.Proxy, error) { leaving = true; return p, nil }))
	if err != nil {
		return err
	}
	if err := do(ctx, p, twinCreate, v1.PhaseRunning); err != nil {
		return err
	}
	if err := workflow.Await(ctx, func() bool { return leaving }); err != nil {
		return err
	}
	return do(ctx, p, twinDelete, v1.PhaseDeleting)
}

// do shows the twin as often as the steps say, with an activity after each time for as
// long as there are any. The phase comes with the last of the attributes.
func do(ctx workflow.Context, p v1.Proxy, s steps, phase v1.Phase) error {
	for n := range max(s.Memos, s.Activities) {
		if n < s.Memos {
			p.Status.Since = workflow.Now(ctx)
			if err := workflow.UpsertMemo(ctx, map[string]any{proxy.MemoProxy: p}); err != nil {
				return err
			}
		}
		if n < s.Attributes {
			if n == s.Attributes-1 {
				p.Status.Phase = phase
			}
			if err := workflow.UpsertTypedSearchAttributes(ctx, found(p)...); err != nil {
				return err
			}
		}
		if n < s.Activities {
			if err := act(ctx, p); err != nil {
				return err
			}
		}
	}
	return nil
}

// found is what a proxy is found by. The names are on the wire, and are not exported.
func found(p v1.Proxy) []temporal.SearchAttributeUpdate {
	word := func(name, value string) temporal.SearchAttributeUpdate {
		return temporal.NewSearchAttributeKeyKeyword(name).ValueSet(value)
	}
	return []temporal.SearchAttributeUpdate{
		word("ProxyPhase", string(p.Status.Phase)), word("ProxyProvider", p.Spec.Provider),
		word("ProxyRegion", p.Spec.Placement.Region), word("ProxyReason", v1.ReasonCreated),
		temporal.NewSearchAttributeKeyBool("ProxyHealthy").ValueSet(false),
	}
}

func act(ctx workflow.Context, p v1.Proxy) error {
	ctx = workflow.WithActivityOptions(ctx, workflow.ActivityOptions{
		StartToCloseTimeout: twinTimeout, HeartbeatTimeout: twinBeat,
	})
	return workflow.ExecuteActivity(ctx, twinActivity, p.Spec).Get(ctx, nil)
}

func nothing(context.Context, v1.ProxySpec) (string, error) { return "", nil }

// bare is the fleet of twins.
type bare struct{ temporal client.Client }

func (bare) prefix(of string) string { return "twin/" + of + "/" }

func (b bare) id(of string, n int) string { return fmt.Sprintf("%s%05d", b.prefix(of), n) }

// put starts a twin and asks it for something at once, as a PUT does.
func (b bare) put(ctx context.Context, of string, n int) error {
	id, p := b.id(of, n), stage.Proxies(1)[0]
	p.Status.Phase = v1.PhasePending
	start := b.temporal.NewWithStartWorkflowOperation(client.StartWorkflowOptions{
		ID: id, TaskQueue: twinQueue, WorkflowIDConflictPolicy: useExisting,
		Memo: map[string]any{proxy.MemoProxy: p},
	}, twinType, p)
	h, err := b.temporal.UpdateWithStartWorkflow(ctx, client.UpdateWithStartWorkflowOptions{
		StartWorkflowOperation: start, UpdateOptions: ask(id, proxy.UpdateApply, p),
	})
	return answered(ctx, h, err)
}

func (b bare) remove(ctx context.Context, of string, n int) error {
	h, err := b.temporal.UpdateWorkflow(ctx, ask(b.id(of, n), proxy.UpdateDelete))
	return answered(ctx, h, err)
}

// plainly starts a workflow of one activity, and waits for nothing.
func (b bare) plainly(ctx context.Context, of string, n int) error {
	_, err := b.temporal.ExecuteWorkflow(ctx, client.StartWorkflowOptions{
		ID: fmt.Sprintf("%s%05d", plainPrefix(of), n), TaskQueue: twinQueue,
	}, plainType)
	return err
}

func plainPrefix(of string) string { return "plain/" + of + "/" }

func ask(id, name string, args ...any) client.UpdateWorkflowOptions {
	return client.UpdateWorkflowOptions{
		WorkflowID: id, UpdateName: name, Args: args, WaitForStage: client.WorkflowUpdateStageCompleted,
	}
}

func answered(ctx context.Context, h client.WorkflowUpdateHandle, err error) error {
	if err != nil {
		return err
	}
	var p v1.Proxy
	return h.Get(ctx, &p)
}
