// Package runbooks types what docs/runbooks says, as it stands there, on a fleet of the
// built binaries: credentials of backends, tokens of the API and keys of the codec are
// rotated, a fleet is installed and taken away, and a worker is upgraded. Its tests are
// under the build tag "tools"; `make test-runbooks` runs them. Start reading at
// TestRotationsNeedNoRestart, and at newSession for the others.
package runbooks
