package server_test

import (
	"os"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestTheContractIsHandedOutAsItIs(t *testing.T) {
	t.Parallel()
	want, err := os.ReadFile(contract)
	require.NoError(t, err)
	answer := newStage().ask(t, "GET", "/openapi.yaml", "")
	require.Equal(t, "application/yaml", answer.Header().Get("Content-Type"))
	require.Equal(t, string(want), answer.Body.String())
}

func TestThePageOfTheContractTellsOfEveryOperation(t *testing.T) {
	t.Parallel()
	answer := newStage().ask(t, "GET", "/docs", "")
	require.Equal(t, 200, answer.Code, answer.Body)
	require.Equal(t, "text/html; charset=UTF-8", answer.Header().Get("Content-Type"))
	page := answer.Body.String()
	for path, item := range loadContract(t).Paths.Map() {
		for method, operation := range item.Operations() {
			require.Contains(t, page, `<article id="`+operation.OperationID+`"`)
			require.Contains(t, page, `<b class="`+method+`">`+method+`</b> `+path)
		}
	}
	for name := range loadContract(t).Components.Schemas {
		require.Contains(t, page, `id="schema-`+name+`"`)
	}
	require.Contains(t, page, "<code>If-Match</code>")
	require.NotContains(t, page, "`")
	require.Contains(t, page, "a stream of events has no end.</li><li>HEAD is")
}
