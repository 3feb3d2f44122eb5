package v1

import (
	"fmt"
	"strings"
	"time"
)

// MaxReason bounds what a person gives as a reason, in bytes: it is kept with the Proxy
// and in its timeline.
const MaxReason = 1 << 10

// What bounds a hold that ends by itself.
const (
	MinHold = time.Second
	MaxHold = 365 * 24 * time.Hour
)

// Why is what replace, retry and resume are asked with: a sentence for the timeline.
type Why struct {
	Reason string `json:"reason,omitempty"` // at most MaxReason bytes
}

// Validate returns nil or a *FieldError.
func (w Why) Validate() error { return validateReason(w.Reason) }

// Hold is what a hold is asked with.
type Hold struct {
	Reason string   `json:"reason,omitempty"` // at most MaxReason bytes
	For    Duration `json:"for,omitempty"`    // empty: until it is resumed
}

// Validate returns nil or a *FieldError.
func (h Hold) Validate() error {
	if err := validateReason(h.Reason); err != nil {
		return err
	}
	if err := h.For.validate("for"); err != nil || h.For == "" {
		return err
	}
	switch d := h.For.Or(0); {
	case d < MinHold:
		return &FieldError{"for", show(string(h.For)), "is less than 1s"}
	case d > MaxHold:
		return &FieldError{"for", show(string(h.For)), "is more than a year; leave it out and end the hold with resume"}
	default:
		return nil
	}
}

// Deletion is what a delete is asked with.
type Deletion struct {
	Reason string // at most MaxReason bytes
	// SkipCleanup ends the Proxy without waiting for its backend, and leaves what is
	// there. It needs a reason.
	SkipCleanup bool
}

// Validate returns nil or a *FieldError.
func (d Deletion) Validate() error {
	if d.SkipCleanup && strings.TrimSpace(d.Reason) == "" {
		return &FieldError{
			"reason", show(d.Reason),
			"is empty: skipCleanup leaves what is at the backend, and needs a reason",
		}
	}
	return validateReason(d.Reason)
}

func validateReason(reason string) error {
	if len(reason) <= MaxReason {
		return nil
	}
	return &FieldError{"reason", show(reason), fmt.Sprintf("has %d bytes, more than %d", len(reason), MaxReason)}
}
