// Package gcp is the provider for Compute Engine: an instance is a VM, and its ID is
// zones/<zone>/instances/<name>. It speaks REST through Google's own client, behind the
// interface engine. What has to be decided is decided in pure functions: zones.go where,
// sight.go what a name's place looks like, state.go what an instance is, classify.go what
// an error means. Start reading at Provider; docs/providers/gcp.md is the guide.
package gcp
