package conn_test

import (
	"testing"

	"go.uber.org/goleak"
)

// TestMain finds what any test has left running.
func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }
