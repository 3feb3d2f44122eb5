package realserver

import (
	"context"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/client"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/egressfleet/egressfleet/starter/fleet"
	"github.com/egressfleet/egressfleet/testsuite/devserver"
)

// withoutOperator is a client of a server that serves no operator's calls, as Temporal
// Cloud's, or not to this client.
func withoutOperator(t *testing.T, space string, code codes.Code) *fleet.Client {
	t.Helper()
	refuse := func(
		ctx context.Context, method string, req, reply any, conn *grpc.ClientConn, call grpc.UnaryInvoker,
		opts ...grpc.CallOption,
	) error {
		if strings.Contains(method, "operatorservice") {
			return status.Error(code, "no operators here")
		}
		return call(ctx, method, req, reply, conn, opts...)
	}
	c, err := client.Dial(client.Options{
		HostPort: server.Address, Namespace: space, Logger: devserver.Quiet(),
		ConnectionOptions: client.ConnectionOptions{DialOptions: []grpc.DialOption{grpc.WithChainUnaryInterceptor(refuse)}},
	})
	require.NoError(t, err)
	t.Cleanup(c.Close)
	return fleet.New(c, "mine")
}

func TestSearchAttributesThatAnAdministratorMadeAreEnough(t *testing.T) {
	l := newLab(t, quick())
	space := l.newNamespace()
	cloud := withoutOperator(t, space, codes.Unimplemented)
	require.Eventually(t, func() bool {
		err := cloud.EnsureSearchAttributes(t.Context(), space)
		require.Error(t, err, "nobody has made them")
		// A new namespace is not everywhere at once.
		return strings.Contains(err.Error(), "no operators here") && strings.Contains(err.Error(),
			"temporal operator search-attribute create --namespace "+space+" --name ProxyPhase --type Keyword")
	}, soon, tick)

	require.Eventually(t, func() bool { return l.EnsureSearchAttributes(t.Context(), space) == nil }, soon, tick)
	for _, code := range []codes.Code{codes.Unimplemented, codes.PermissionDenied} {
		cloud := withoutOperator(t, space, code)
		require.Eventually(t, func() bool { return cloud.EnsureSearchAttributes(t.Context(), space) == nil }, soon, tick)
	}
}
