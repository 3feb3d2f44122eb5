package latency

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/egressfleet/egressfleet/providers"
	"github.com/egressfleet/egressfleet/testsuite/fake"
)

func TestABellTellsOfTheNextDeleteAndOfLooks(t *testing.T) {
	t.Parallel()
	b := newBell(fake.New(idle))
	id, err := b.Create(t.Context(), providers.CreateRequest{Name: "p-1", UID: "u", Port: port})
	require.NoError(t, err)
	require.False(t, b.looked(id))
	_, err = b.Get(t.Context(), id)
	require.NoError(t, err)
	require.True(t, b.looked(id))

	begun := time.Now()
	heard := b.listen(id)
	require.NoError(t, b.Delete(t.Context(), id))
	require.False(t, (<-heard).Before(begun))
	require.NoError(t, b.Delete(t.Context(), id), "nobody listens any more")
	require.Empty(t, b.Instances())
}
