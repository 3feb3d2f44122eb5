// Package runbooks types what docs/runbooks says about rotating, as it stands there, on a
// fleet of the built binaries: credentials of backends, tokens of the API, keys of the
// codec. Its tests are under the build tag "tools"; `make test-runbooks` runs them. Start
// reading at TestRotationsNeedNoRestart.
package runbooks
