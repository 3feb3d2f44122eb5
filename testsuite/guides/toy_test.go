package guides_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/egressfleet/egressfleet/testsuite/guides"
)

// Whoever copies the blocks of docs/adding-a-provider.md into the files that they name
// gets the provider that passes the suite, to the letter.
func TestFollowingTheGuideBuildsTheToy(t *testing.T) {
	t.Parallel()
	built := map[string]string{}
	for _, block := range guides.Blocks(read(t, "docs", "adding-a-provider.md")) {
		if block.File == "" {
			require.Empty(t, block.Language, "a block of code names its file: %s", block.Code)
			continue
		}
		if built[block.File] != "" {
			built[block.File] += "\n" // between two declarations
		}
		built[block.File] += block.Code
	}
	require.Len(t, built, 3)
	for _, file := range []string{"toy.go", "toy_test.go", "testdata/providers.yaml"} {
		require.Equal(t, read(t, "testsuite", "toy", file), built[file], "testsuite/toy/%s and the blocks of the guide", file)
	}
}
