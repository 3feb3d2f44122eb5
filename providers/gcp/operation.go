package gcp

import (
	"fmt"
	"net/http"
	"strings"
	"time"

	"cloud.google.com/go/compute/apiv1/computepb"

	"github.com/egressfleet/egressfleet/providers"
)

// The types of operations about an instance that say something here.
const (
	typeInsert = "insert"
	typeDelete = "delete"
	// typePreempted is an operation of Google's own: it took a spot instance back.
	typePreempted = "compute.instances.preempted"
)

// failedOperation is the error of an operation that ended badly. Google's client makes
// of it an error without the code, in which a quota looks like a missing right.
type failedOperation struct {
	code, message string
	status        int
}

// Error has the code and Google's own text.
func (f *failedOperation) Error() string { return f.code + ": " + f.message }

// failureOf returns why an operation failed; nil when it has not.
func failureOf(op *computepb.Operation) *failedOperation {
	if op.GetStatus() != computepb.Operation_DONE {
		return nil
	}
	all := op.GetError().GetErrors()
	status := int(op.GetHttpErrorStatusCode())
	if len(all) == 0 && status < 300 {
		return nil
	}
	f := &failedOperation{status: status, code: "UNKNOWN", message: op.GetHttpErrorMessage()}
	var texts []string
	for i, one := range all {
		if i == 0 {
			f.code = one.GetCode()
		}
		texts = append(texts, one.GetMessage())
		for _, detail := range one.GetErrorDetails() {
			if text := detail.GetLocalizedMessage().GetMessage(); text != "" {
				texts = append(texts, text)
			}
		}
	}
	if len(texts) > 0 {
		f.message = shorten(strings.Join(texts, " "))
	}
	return f
}

// history is what operations tell about the instance of one place.
type history struct {
	insert    *computepb.Operation // the newest
	deleted   *computepb.Operation // the newest delete after which nothing is there
	refused   int                  // deletes that came to nothing
	deleting  bool                 // a delete is under way
	preempted bool                 // Google took the instance back
}

// tell reads the operations of one place, in whatever order they come. Those of another
// target are not looked at: the filter of the API finds by a part of it.
func tell(at place, ops []*computepb.Operation) (h history) {
	var preempted *computepb.Operation
	for _, op := range ops {
		if !strings.HasSuffix(op.GetTargetLink(), "/"+at.path("instances")) {
			continue
		}
		switch op.GetOperationType() {
		case typeInsert:
			h.insert = newer(h.insert, op)
		case typeDelete:
			h.removal(op)
		case typePreempted:
			preempted = newer(preempted, op)
		}
	}
	h.preempted = preempted != nil &&
		(h.insert == nil || !timestamp(preempted.GetInsertTime()).Before(timestamp(h.insert.GetInsertTime())))
	return h
}

// removal adds a delete. One that found nothing has the end of one that worked: of two
// that are sent at once, one does.
func (h *history) removal(op *computepb.Operation) {
	switch f := failureOf(op); {
	case op.GetStatus() != computepb.Operation_DONE:
		h.deleting = true
	case f != nil && f.status != http.StatusNotFound:
		h.refused++
	default:
		h.deleted = newer(h.deleted, op)
	}
}

func newer(a, b *computepb.Operation) *computepb.Operation {
	if a == nil || timestamp(b.GetInsertTime()).After(timestamp(a.GetInsertTime())) {
		return b
	}
	return a
}

// timestamp reads a time of the API; the zero time when it cannot be read.
func timestamp(text string) time.Time {
	at, err := time.Parse(time.RFC3339, text)
	if err != nil {
		return time.Time{}
	}
	return at.UTC()
}

// visibleWithin is how long after the end of its insert a 404 is not believed where no
// operation says that the instance went. Compute Engine documents no bound after which
// every read sees what an insert made; this one is ours, an interval of the drift sweep.
// Believed too early, a 404 makes a second instance. Believed too late, a loss without a
// trace is noticed that much later, and only of an instance this young: a delete by
// whomever has an operation, and ends the wait at once.
const visibleWithin = 2 * time.Minute

// inserting reports whether an insert is under way, or ended so lately that a read may
// not see the instance yet, and nobody has deleted it since.
func (h history) inserting(now time.Time) bool {
	switch {
	case h.insert == nil || h.undone():
		return false
	case h.insert.GetStatus() != computepb.Operation_DONE:
		return true
	case failureOf(h.insert) != nil:
		return false
	}
	return now.Sub(timestamp(h.insert.GetEndTime())) < visibleWithin
}

// undone reports whether a delete came after the insert.
func (h history) undone() bool {
	return h.insert != nil && h.deleted != nil &&
		!timestamp(h.deleted.GetInsertTime()).Before(timestamp(h.insert.GetInsertTime()))
}

// failed returns why the newest insert came to nothing; nil when it did not, or when a
// delete came after it.
func (h history) failed() *failedOperation {
	if h.insert == nil || h.undone() {
		return nil
	}
	return failureOf(h.insert)
}

// errorOfMissing is what Get says of an instance that reads do not find. now is ours: the
// window is minutes, and clocks differ by seconds.
func errorOfMissing(h history, settled bool, now time.Time) (op string, err error) {
	switch failed := h.failed(); {
	case h.deleting:
		return providers.OpGet, transient("the instance is no longer there, and its delete is under way")
	case h.inserting(now):
		return providers.OpGet, transient("the instance is not there yet: its insert is %s", word(h.insert))
	case failed != nil && !settled:
		return providers.OpCreate, failed
	}
	return providers.OpGet, notFound("there is no such instance")
}

func word(op *computepb.Operation) string {
	return fmt.Sprintf("%s, %d %%", op.GetStatus(), op.GetProgress())
}
