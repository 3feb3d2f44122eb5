// Package installation is the birth record of an installation: a workflow that is
// started once and never ends. A missing owner only proves an orphan when the
// instance is younger than this record, for a lost database has lost it, too. It
// imports nothing of ours but api/v1. Start reading at Run.
package installation

import (
	"fmt"
	"strings"
	"time"

	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"

	v1 "github.com/egressfleet/egressfleet/api/v1"
)

// Names on the wire. Changing one loses the birth record.
const (
	WorkflowType = "Installation"
	idPrefix     = "installation/"
	errInvalid   = "InvalidInput"
)

// WorkflowID is the only place where the ID is written.
func WorkflowID(installation string) string { return idPrefix + installation }

// NameOf is the only place where the ID is read.
func NameOf(workflowID string) (string, error) {
	name, ok := strings.CutPrefix(workflowID, idPrefix)
	if !ok || !v1.IsName(name) {
		return "", fmt.Errorf("workflow ID: %q is not %s<installation>, a DNS label", workflowID, idPrefix)
	}
	return name, nil
}

// Run keeps the record until somebody cancels it. Its start time is the birth of the
// installation, so it never continues as new.
func Run(ctx workflow.Context) error {
	info := workflow.GetInfo(ctx)
	name, err := NameOf(info.WorkflowExecution.ID)
	if err != nil {
		return temporal.NewNonRetryableApplicationError(err.Error(), errInvalid, nil)
	}
	workflow.SetCurrentDetails(ctx, fmt.Sprintf(
		"Birth record of installation `%s`, made %s. It stays open: without it, orphan collection keeps every "+
			"instance whose owner it cannot find.", name, info.WorkflowStartTime.UTC().Format(time.RFC3339)))
	return workflow.Await(ctx, func() bool { return false })
}
