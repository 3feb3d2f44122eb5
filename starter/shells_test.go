//go:build tools

package main

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// inShell runs a script in a shell whose starter is this test binary over its own fleet.
func inShell(t *testing.T, shell, script string, args ...string) string {
	t.Helper()
	path, err := exec.LookPath(shell)
	require.NoError(t, err, "on Debian: apt-get install -y --no-install-recommends bash bash-completion zsh fish")
	self, err := os.Executable()
	require.NoError(t, err)
	bin, home := t.TempDir(), t.TempDir()
	wrapper := "#!/bin/sh\n" + playVar + "=" + playFleet + " exec '" + self + "' \"$@\"\n"
	require.NoError(t, os.WriteFile(filepath.Join(bin, "starter"), []byte(wrapper), 0o700))
	ctx, cancel := context.WithTimeout(t.Context(), soon)
	defer cancel()
	cmd := exec.CommandContext(ctx, path, append(args, script)...)
	cmd.Env = []string{"PATH=" + bin + ":" + os.Getenv("PATH"), "HOME=" + home, "TERM=dumb", "LC_ALL=C.UTF-8"}
	out, err := cmd.CombinedOutput()
	require.NoError(t, err, string(out))
	return string(out)
}

// completed is a line, up to where Tab is pressed, and what it becomes or offers.
var completed = map[string]string{
	"starter get wai":               "waits",
	"starter delete runs ":          "waits",
	"starter explain ru":            "runs",
	"starter get --namespace cra":   "crawl",
	"starter replace -n crawl ":     "six",
	"starter get -o wi":             "wide",
	"starter expl":                  "explain",
	"starter drain --provider=lo":   "local",
	"starter get -n crawl s":        "six",
	"starter completion fi":         "fish",
	"starter gc run --provider loc": "local",
}

func TestShellBash(t *testing.T) {
	t.Parallel()
	// Readline calls the function that "complete" registers, with these variables; compopt
	// is its own, and works nowhere else.
	const script = `set -e
source /usr/share/bash-completion/bash_completion
source <(starter completion bash)
complete -p starter >/dev/null
COMP_LINE=$LINE COMP_POINT=${#LINE} COMP_TYPE=9 COMP_KEY=9
read -ra COMP_WORDS <<<"${LINE/=/ = }"
[[ $LINE == *' ' ]] && COMP_WORDS+=("")
COMP_CWORD=$((${#COMP_WORDS[@]} - 1))
function_=$(complete -p starter | sed 's/.*-F \([^ ]*\).*/\1/')
set +e
compopt() { :; }
$function_ starter "${COMP_WORDS[COMP_CWORD]}" "${COMP_WORDS[COMP_CWORD-1]}"
printf '%s\n' "${COMPREPLY[@]}"
`
	for line, want := range completed {
		t.Run(line, func(t *testing.T) {
			t.Parallel()
			out := inShell(t, "bash", "LINE='"+line+"'\n"+script, "--norc", "-c")
			require.Equal(t, want, strings.TrimSpace(out))
		})
	}
}

func TestShellFish(t *testing.T) {
	t.Parallel()
	for line, want := range completed {
		t.Run(line, func(t *testing.T) {
			t.Parallel()
			out := inShell(t, "fish", "starter completion fish | source; complete -C '"+line+"'", "--no-config", "-c")
			word, _, _ := strings.Cut(strings.TrimSpace(out), "\t")
			require.Equal(t, want, strings.TrimPrefix(word, "--provider="))
			require.Equal(t, 1, strings.Count(strings.TrimSpace(out)+"\n", "\n"), out)
		})
	}
}

func TestShellZsh(t *testing.T) {
	t.Parallel()
	// A line editor needs a terminal: zpty is one. The second words keep what is typed from
	// being taken for what is answered.
	const script = `zmodload zsh/zpty
zpty shell "zsh -f -i"
zpty -w shell 'PS1=; autoload -U compinit; compinit -D -u; source <(starter completion zsh); print rea""dy'
zpty -r shell said '*ready*' || exit 1
zpty -n -w shell "$LINE"$'\t'
zpty -r shell said "*$LINE$REST*" || { print -r -- "$said"; exit 1 }
zpty -d shell
print -r -- "$LINE$REST"
`
	for line, want := range completed {
		t.Run(line, func(t *testing.T) {
			t.Parallel()
			typed := line[strings.LastIndexAny(line, " =")+1:]
			rest := strings.TrimPrefix(want, typed)
			out := inShell(t, "zsh", "LINE='"+line+"' REST='"+rest+"'\n"+script, "-f", "-c")
			require.Equal(t, line+rest+"\n", out)
		})
	}
}
