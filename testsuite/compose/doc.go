// Package compose checks deploy/compose as far as that goes without a container engine:
// its schema, what it mounts, publishes and waits for, and what it tells the worker.
// Start reading at load, in its tests.
package compose
