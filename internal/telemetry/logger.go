// Package telemetry is what a process tells about itself: its log, its metrics and
// its version. It imports libraries only and knows nothing of the fleet. Start
// reading at NewLogger and NewRegistry.
package telemetry

import (
	"io"
	"log/slog"
)

// NewLogger returns a logger that writes lines of JSON, or of key=value text, at
// level and above.
func NewLogger(w io.Writer, level slog.Level, json bool) *slog.Logger {
	options := &slog.HandlerOptions{Level: level}
	if json {
		return slog.New(slog.NewJSONHandler(w, options))
	}
	return slog.New(slog.NewTextHandler(w, options))
}
