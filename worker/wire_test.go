package main_test

import (
	"context"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/stats"
	"google.golang.org/grpc/status"

	worker "github.com/egressfleet/egressfleet/worker"
)

// Each compressor at work is most of a mebibyte, and there is one for each call under way.
func TestNothingIsCompressedForTemporal(t *testing.T) {
	t.Parallel()
	seen := new(compressions)
	cfg := settings(serve(t, &temporal{refuse: status.Error(codes.Unauthenticated, "seen")}, grpc.StatsHandler(seen)))
	require.Error(t, worker.Run(t.Context(), cfg, worker.Options{Log: t.Output(), Environment: quiet()}))
	seen.mu.Lock()
	defer seen.mu.Unlock()
	require.NotEmpty(t, seen.of)
	for _, compression := range seen.of {
		require.Empty(t, compression)
	}
}

// compressions is what the requests of a server came with.
type compressions struct {
	mu sync.Mutex
	of []string
}

func (c *compressions) HandleRPC(_ context.Context, s stats.RPCStats) {
	if header, ok := s.(*stats.InHeader); ok {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.of = append(c.of, header.Compression)
	}
}

func (*compressions) TagRPC(ctx context.Context, _ *stats.RPCTagInfo) context.Context { return ctx }

func (*compressions) TagConn(ctx context.Context, _ *stats.ConnTagInfo) context.Context { return ctx }

func (*compressions) HandleConn(context.Context, stats.ConnStats) {}
