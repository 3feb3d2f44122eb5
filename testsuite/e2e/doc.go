// Package e2e runs the built binaries as a person does: a real Temporal server, the
// worker and the starter as processes of their own, HTTP, and proxies that carry
// traffic. Start reading at world.
package e2e
