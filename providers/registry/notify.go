package registry

import (
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"sync"

	"github.com/fsnotify/fsnotify"
)

// notifier is a Watcher on the operating system's events. It watches folders, since a
// file that is replaced takes its own watch with it.
type notifier struct {
	inner   *fsnotify.Watcher
	changed chan struct{} // holds one: whoever takes it looks at everything

	mu      sync.Mutex
	entries []string
}

// NewWatcher returns a Watcher on the operating system's events. Close it.
func NewWatcher() (Watcher, error) {
	inner, err := fsnotify.NewWatcher()
	if err != nil {
		return nil, fmt.Errorf("watching files: %w", err)
	}
	n := &notifier{inner: inner, changed: make(chan struct{}, 1)}
	go n.run()
	return n, nil
}

// Watch adds every folder anew: one that was replaced is another one.
func (n *notifier) Watch(entries []string) error {
	n.mu.Lock()
	n.entries = entries
	n.mu.Unlock()
	var wanted []string
	for _, entry := range entries {
		wanted = append(wanted, filepath.Dir(entry))
	}
	var faults []error
	for _, dir := range n.inner.WatchList() {
		if !slices.Contains(wanted, dir) {
			_ = n.inner.Remove(dir) // it may be gone by itself
		}
	}
	for _, dir := range slices.Compact(slices.Sorted(slices.Values(wanted))) {
		if err := n.inner.Add(dir); err != nil {
			faults = append(faults, fmt.Errorf("watching %q: %w", dir, err))
		}
	}
	return errors.Join(faults...)
}

// Changed has a value when something may have changed.
func (n *notifier) Changed() <-chan struct{} { return n.changed }

// Close ends the events.
func (n *notifier) Close() error { return n.inner.Close() }

func (n *notifier) run() {
	for {
		select {
		case event, open := <-n.inner.Events:
			if !open {
				return
			}
			if n.matters(event.Name) {
				n.tell()
			}
		case _, open := <-n.inner.Errors:
			if !open {
				return
			}
			n.tell() // events were lost: it may have been any
		}
	}
}

// matters reports whether a path is an entry, or a folder that entries are in.
func (n *notifier) matters(path string) bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	return slices.ContainsFunc(n.entries, func(entry string) bool {
		return entry == path || filepath.Dir(entry) == path
	})
}

func (n *notifier) tell() {
	select {
	case n.changed <- struct{}{}:
	default:
	}
}
