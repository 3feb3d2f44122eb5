// Package chart holds what deploy/helm/egressfleet renders against those who read it: a
// real API server with strict validation, the worker's own configuration, and the Role
// of deploy/kubernetes. Its tests are under the build tag "integration"; `make
// test-chart` runs them. Start reading at TestEveryObjectIsTakenByTheAPIServer.
package chart
