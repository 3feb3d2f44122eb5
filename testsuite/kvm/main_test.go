//go:build integration && linux

package kvm

import (
	"os"
	"testing"

	"github.com/egressfleet/egressfleet/testsuite/kvmlab"
)

func TestMain(m *testing.M) { os.Exit(kvmlab.Main(m)) }
