package main

import (
	"bytes"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/egressfleet/egressfleet/testsuite/guides"
)

// starterCall is what a page has a reader type, up to what is another command.
var starterCall = regexp.MustCompile(`(?m)^\s*(?:bin/)?starter ([^|#&;\n<>]+)`)

// What a runbook has somebody type at night is a command, with flags that it has.
func TestTheRunbooksCallTheStarterAsItIs(t *testing.T) {
	t.Parallel()
	pages, err := filepath.Glob("../docs/runbooks/*.md")
	require.NoError(t, err)
	calls := 0
	for _, page := range append(pages, "../docs/production.md") {
		text, err := os.ReadFile(page)
		require.NoError(t, err)
		for _, block := range guides.Blocks(string(text)) {
			for _, found := range starterCall.FindAllStringSubmatch(strings.ReplaceAll(block.Code, "\\\n", " "), -1) {
				calls++
				var out bytes.Buffer
				root := NewCommand(Streams{In: strings.NewReader(""), Out: &out, Err: &out}, Outside{})
				cmd, rest, err := root.Find(argsOf(found[1]))
				require.NoError(t, err, "%s: starter %s", page, found[1])
				require.NotEqual(t, root, cmd, "%s: starter %s", page, found[1])
				require.NoError(t, cmd.ParseFlags(rest), "%s: starter %s", page, found[1])
				require.NoError(t, cmd.ValidateArgs(cmd.Flags().Args()), "%s: starter %s", page, found[1])
			}
		}
	}
	require.Greater(t, calls, 10)
}

// argsOf splits as a shell does, as far as the pages go; what they leave to the reader,
// in brackets, is left out.
func argsOf(line string) []string {
	line = regexp.MustCompile(`\[[^\]]*\]`).ReplaceAllString(line, "")
	var found []string
	for _, word := range regexp.MustCompile(`'[^']*'|"[^"]*"|\S+`).FindAllString(line, -1) {
		found = append(found, strings.Trim(word, `'"`))
	}
	return found
}
