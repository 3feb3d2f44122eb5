package fleet

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.temporal.io/api/common/v1"
	"go.temporal.io/sdk/converter"

	v1 "github.com/egressfleet/egressfleet/api/v1"
)

// namesOn are the proxies of each page.
func namesOn(t *testing.T, c *Client, size int, pages [][]byte) (names [][]string) {
	t.Helper()
	for _, begins := range pages {
		proxies, err := c.Page(t.Context(), size, begins)
		require.NoError(t, err)
		var on []string
		for _, p := range proxies {
			on = append(on, p.Metadata.Name)
		}
		names = append(names, on)
	}
	return names
}

func TestEveryRunningProxyIsOnOnePage(t *testing.T) {
	t.Parallel()
	v, c := followed(t, "a", "b", "c", "d", "e")
	v.records[1].phase, v.records[1].changed = v1.PhaseDeleting, v.now
	v.pass(time.Second)
	for size, want := range map[int][][]string{
		1: {{"a"}, {"c"}, {"d"}, {"e"}}, 3: {{"a", "c", "d"}, {"e"}}, 2: {{"a", "c"}, {"d", "e"}}, 4: {{"a", "c", "d", "e"}},
	} {
		pages, err := c.Pages(t.Context(), size)
		require.NoError(t, err)
		require.Equal(t, want, namesOn(t, c, size, pages), size)
	}
	require.Zero(t, v.listings(), "what is followed is not listed again")

	pages, err := c.Pages(t.Context(), 2)
	require.NoError(t, err)
	v.pass(time.Second)
	v.begin("bb", "run-bb")
	v.begin("f", "run-f")
	v.end(v.records[2], terminated)
	require.Equal(t, [][]string{{"a", "bb"}, {"d", "e", "f"}}, namesOn(t, c, 2, pages), "what begins meanwhile, too")
}

func TestNoProxyIsNoPage(t *testing.T) {
	t.Parallel()
	v, c := followed(t)
	pages, err := c.Pages(t.Context(), 2)
	require.NoError(t, err)
	require.Empty(t, pages)
	v.fault = errors.New("away")
	_, err = c.Pages(t.Context(), 2)
	require.ErrorContains(t, err, "away")
	_, err = c.Page(t.Context(), 2, part{From: "a"}.encode())
	require.ErrorContains(t, err, "away")
}

// The round was planned by a worker of before.
func TestATokenOfVisibilityIsAPage(t *testing.T) {
	t.Parallel()
	_, c := followed(t, "a", "b", "c", "d")
	require.Equal(t, [][]string{{"a", "b", "c"}, {"d"}}, namesOn(t, c, 3, [][]byte{nil, make([]byte, perPage)}))
}

// sealedFor has no key for what has such a text in it.
type sealedFor struct {
	converter.DataConverter
	text string
}

func (s sealedFor) FromPayload(p *common.Payload, to any) error {
	if strings.Contains(string(p.GetData()), s.text) {
		return sealed{}.FromPayload(p, to)
	}
	return s.DataConverter.FromPayload(p, to)
}

func TestAMemoWithoutAKeyDoesNotHideTheOthers(t *testing.T) {
	t.Parallel()
	v, c := followed(t, "a", "b", "c")
	c.memos = sealedFor{c.memos, `"name":"c"`}
	v.change(v.records[2], "10.0.0.2")
	slices.Reverse(v.records)
	v.pass(time.Second)
	_, err := c.Follow(t.Context())
	require.Error(t, err)
	pages, err := c.Pages(t.Context(), 1)
	require.NoError(t, err)
	require.Equal(t, [][]string{{"a"}, {"b"}}, namesOn(t, c, 1, pages))
}
