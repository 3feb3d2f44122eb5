// Package kubernetes runs the provider of that name against real clusters: kwok's Pods
// where only the API server matters, and real ones, with the built worker and Debian's
// squid. `make test-integration-kubernetes` runs it, as root on Linux. Start reading at
// main_test.go; testsuite/kubelab has the clusters.
package kubernetes
