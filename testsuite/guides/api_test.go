package guides_test

import (
	"path/filepath"
	"regexp"
	"testing"

	"github.com/getkin/kin-openapi/openapi3"
	"github.com/stretchr/testify/require"

	"github.com/egressfleet/egressfleet/api/access"
	"github.com/egressfleet/egressfleet/api/discovery"
	"github.com/egressfleet/egressfleet/testsuite/guides"
)

const sampleTokens = "docs/samples/tokens.yaml"

func TestTheSampleOfTokensIsTakenAndIsTheOneOfTheGuide(t *testing.T) {
	t.Parallel()
	_, err := access.Open(filepath.Join(root, sampleTokens), nil, nil)
	require.NoError(t, err)
	sample := read(t, sampleTokens)
	for _, scope := range access.Scopes() {
		require.Contains(t, sample, "scopes: ["+string(scope)+"]")
	}
	shown := 0
	for _, block := range guides.Blocks(read(t, "docs", "api.md")) {
		if block.File == sampleTokens {
			shown++
			require.Equal(t, sample, block.Code)
		}
	}
	require.Equal(t, 1, shown)
}

var problemName = regexp.MustCompile("`[a-z-]+`")

// What the contract has by name, the guide tells of.
func TestTheGuideToTheAPITellsOfEveryParameterFormatScopeAndAnswer(t *testing.T) {
	t.Parallel()
	guide := read(t, "docs", "api.md")
	contract, err := openapi3.NewLoader().LoadFromFile(filepath.Join(root, "api", "openapi.yaml"))
	require.NoError(t, err)
	for path, item := range contract.Paths.Map() {
		for _, operation := range item.Operations() {
			for _, parameter := range operation.Parameters {
				require.Contains(t, guide, "`"+parameter.Value.Name+"`", "%s, parameter", path)
			}
			for status := range operation.Responses.Map() {
				if status >= "400" {
					require.Contains(t, guide, "\n| "+status+" |", path)
				}
			}
		}
	}
	typ := contract.Components.Schemas["Problem"].Value.Properties["type"].Value
	kinds := problemName.FindAllString(typ.Description, -1)
	require.Greater(t, len(kinds), 15)
	for _, kind := range kinds {
		require.Contains(t, guide, kind)
	}
	for _, format := range discovery.Formats() {
		require.Contains(t, guide, "\n| `"+string(format)+"` |")
	}
	for _, scope := range access.Scopes() {
		require.Contains(t, guide, "\n| `"+string(scope)+"` |")
	}
}
