// Package output keeps what a program says while a test reads it. It imports nothing of
// ours. Start reading at Log.
package output

import (
	"bytes"
	"sync"
)

// Log is written by one and read by another at the same time. The zero value is empty.
type Log struct {
	mu   sync.Mutex
	text bytes.Buffer
}

// Write never fails.
func (l *Log) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(p)
}

// String is everything until now.
func (l *Log) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}
