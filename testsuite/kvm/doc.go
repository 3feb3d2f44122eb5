// Package kvm holds the tests of the provider kvm against real libvirt: two hosts of
// testsuite/kvmlab, whose guests run under emulation. `make test-integration-kvm` runs
// them, as root on Linux; what is missing makes them fail. Start reading at scene_test.go.
package kvm
