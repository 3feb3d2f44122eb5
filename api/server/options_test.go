package server_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/egressfleet/egressfleet/api/server"
)

func TestNothingIsUnboundedByDefault(t *testing.T) {
	t.Parallel()
	is := server.New(newFleet(), server.Options{}).HTTPServer()
	require.Equal(t, 5*time.Second, is.ReadHeaderTimeout)
	require.Equal(t, 10*time.Second, is.ReadTimeout)
	require.Equal(t, 30*time.Second, is.WriteTimeout)
	require.Equal(t, 2*time.Minute, is.IdleTimeout)
	require.Equal(t, 16<<10, is.MaxHeaderBytes)
}

func TestALimitThatIsGivenCounts(t *testing.T) {
	t.Parallel()
	limits := server.Limits{ReadHeader: 1, Read: 2, Write: 3, Idle: 4, HeaderBytes: 5}
	is := server.New(newFleet(), server.Options{Limits: limits}).HTTPServer()
	require.Equal(t, []time.Duration{1, 2, 3, 4},
		[]time.Duration{is.ReadHeaderTimeout, is.ReadTimeout, is.WriteTimeout, is.IdleTimeout})
	require.Equal(t, 5, is.MaxHeaderBytes)
}
