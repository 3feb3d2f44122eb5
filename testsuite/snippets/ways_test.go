//go:build tools && linux

package snippets

import (
	"bytes"
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
)

// program is what reads a block: the file that it is written to, and the command.
type program struct {
	file    string
	command []string
	// quiet programs end well when they could fetch nothing, and show it.
	quiet bool
}

var shell = program{file: "snippet.sh", command: []string{"sh", "-e", "snippet.sh"}}

// fetching are the blocks that get a page, with how many lines they print, each of which
// is the site's answer to a proxy, and what is true of the lines of so many runs besides.
var fetching = map[string]struct {
	program
	lines int
	runs  int // 0 is one
	also  func(t *testing.T, lines []string)
}{
	"curl": {program: shell, lines: 1},
	// Often, because one of two proxies is the right one by chance, too.
	"curl-sticky": {program: shell, lines: 3, runs: 10, also: func(t *testing.T, lines []string) {
		t.Helper()
		for i := 0; i < len(lines); i += 3 {
			require.Equal(t, lines[:2], lines[i:i+2], "the same account, the same proxy")
			require.Equal(t, lines[0], lines[i+2], "alice is alice")
		}
	}},
	"env":  {program: shell, lines: 1},
	"go":   {program: program{file: "main.go", command: []string{"go", "run", "main.go"}}, lines: 1},
	"node": {program: program{file: "snippet.mjs", command: []string{"node", "snippet.mjs"}}, lines: 1},
	"scrapy": {
		program: program{file: "spider.py", command: []string{"scrapy", "runspider", "spider.py"}, quiet: true}, lines: 1,
	},
	"chromium": {
		program: program{file: "snippet.sh", command: shell.command, quiet: true}, lines: 1,
	},
}

// start writes a block to a folder of its own and starts what reads it, which the end of
// the test ends.
func (w *world) start(text string, p program) (cmd *exec.Cmd, out *bytes.Buffer) {
	w.t.Helper()
	cmd = w.prepare(text, p)
	out = &bytes.Buffer{}
	cmd.Stdout = out
	require.NoError(w.t, cmd.Start())
	return cmd, out
}

// prepare returns the command, with nothing in its environment that speaks of proxies,
// and with what makes it trust the site. It has a process group of its own, and that is
// ended with the test.
func (w *world) prepare(text string, p program) *exec.Cmd {
	w.t.Helper()
	dir := w.t.TempDir()
	require.NoError(w.t, os.WriteFile(filepath.Join(dir, p.file), []byte(text), 0o600))
	const modules = "node_modules"
	require.NoError(w.t, os.Symlink(filepath.Join(os.Getenv(modulesEnv), modules), filepath.Join(dir, modules)))
	ctx, cancel := context.WithTimeout(context.WithoutCancel(w.t.Context()), soon)
	cmd := exec.CommandContext(ctx, p.command[0], p.command[1:]...)
	cmd.Dir = dir
	for _, entry := range os.Environ() {
		if name, _, _ := strings.Cut(entry, "="); !strings.HasSuffix(strings.ToUpper(name), "_PROXY") {
			cmd.Env = append(cmd.Env, entry)
		}
	}
	for _, name := range []string{"SSL_CERT_FILE", "CURL_CA_BUNDLE", "NODE_EXTRA_CA_CERTS"} {
		cmd.Env = append(cmd.Env, name+"="+w.site.roots)
	}
	cmd.Env = append(cmd.Env, "PATH="+w.sandboxless()+":"+os.Getenv("PATH"))
	said := &bytes.Buffer{}
	cmd.Stderr = said
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	w.t.Cleanup(func() {
		cancel()
		if cmd.Process != nil {
			_ = cmd.Cancel()
			_ = cmd.Wait() // its end is known where it matters
		}
		if w.t.Failed() {
			w.t.Log(said)
		}
	})
	return cmd
}

// sandboxless is a folder with a chromium that runs as root, and keeps its profile
// to itself. The tests are root, to have namespaces; people are not.
func (w *world) sandboxless() string {
	w.t.Helper()
	dir := w.t.TempDir()
	path, err := exec.LookPath("chromium")
	require.NoError(w.t, err)
	// A short path: sockets of the profile have no room for more.
	text := "#!/bin/sh\nTMPDIR=$(mktemp -d) || exit\nexport TMPDIR\nHOME=$TMPDIR exec " + path + " --no-sandbox \"$@\"\n"
	require.NoError(w.t, os.WriteFile(filepath.Join(dir, "chromium"), []byte(text), 0o700))
	return dir
}
