package main

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestNamesAreCompleted(t *testing.T) {
	t.Parallel()
	const end = ":4\nCompletion ended with directive: ShellCompDirectiveNoFileComp\n"
	for line, want := range map[string]string{
		"get ":                     "runs\tRunning at gcp\nwaits\tPending at gcp\n",
		"describe ":                "runs\tRunning at gcp\nwaits\tPending at gcp\n",
		"explain ":                 "runs\tRunning at gcp\nwaits\tPending at gcp\n",
		"timeline runs ":           "",
		"delete runs ":             "waits\tPending at gcp\n",
		"hold runs waits ":         "",
		"replace -n crawl ":        "six\tRunning at local\n",
		"retry --namespace crawl ": "six\tRunning at local\n",
		"resume -n ":               "crawl\ndefault\n",
		"get -o ":                  "table\nwide\njson\nyaml\n",
		"drain --provider ":        "gcp\nlocal\n",
		"gc run --provider ":       "gcp\nlocal\n",
		"completion ":              "bash\nzsh\nfish\n",
		// The shell leaves out what does not fit.
		"get --temporal-address nowhere r": "runs\tRunning at gcp\nwaits\tPending at gcp\n",
	} {
		t.Run(line, func(t *testing.T) {
			t.Parallel()
			args := append([]string{"__complete"}, strings.Split(line, " ")...)
			out, errOut, code := run(t.Context(), fleetOfThree(), "", args...)
			require.Zero(t, code, errOut)
			require.Equal(t, want+strings.SplitAfter(end, "\n")[0], out)
		})
	}
}

func TestCompletionIsSilentWithoutAFleet(t *testing.T) {
	t.Parallel()
	var out, errOut strings.Builder
	cmd := NewCommand(Streams{In: strings.NewReader(""), Out: &out, Err: &errOut}, Outside{
		Connect: func(ctx context.Context, _ Temporal) (Fleet, func(), error) {
			_, bounded := ctx.Deadline()
			require.True(t, bounded)
			return nil, nil, errors.New("nobody there")
		},
		Now: time.Now, Every: never, After: time.After,
	})
	cmd.SetArgs([]string{"__complete", "get", ""})
	require.NoError(t, cmd.ExecuteContext(t.Context()))
	require.Equal(t, ":4\n", out.String())
	require.NotContains(t, errOut.String(), "nobody there")
}

func TestEveryShellHasItsScript(t *testing.T) {
	t.Parallel()
	for shell, want := range map[string]string{
		"bash": "complete -o default -F __start_starter starter", "zsh": "#compdef starter", "fish": "complete -c starter",
	} {
		out, errOut, code := run(t.Context(), nil, "", "completion", shell)
		require.Zero(t, code, errOut)
		require.Contains(t, out, want)
	}
	_, errOut, code := run(t.Context(), nil, "", "completion", "tcsh")
	require.Equal(t, exitUsage, code)
	require.Contains(t, errOut, `"tcsh" is neither bash, zsh nor fish`)
}

func TestTheExitCodesAreAHelpTopic(t *testing.T) {
	t.Parallel()
	out, errOut, code := run(t.Context(), nil, "", "help", "exit-codes")
	require.Zero(t, code, errOut)
	for _, m := range exitMeanings() {
		require.Contains(t, out, m.Meaning)
	}
}
