// Package traces holds the tests of what a real Jaeger has of a real worker: one trace
// for each provider, from the request to the backend. `make test-traces` runs them.
// Start reading at traces_test.go.
package traces
