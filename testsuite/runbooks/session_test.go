//go:build tools

package runbooks_test

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/egressfleet/egressfleet/testsuite/devserver"
	"github.com/egressfleet/egressfleet/testsuite/output"
)

// ended is what the shell prints after a block, before the block's exit code.
const ended = "egressfleet: the block has ended with "

// namedPort is a port in a block of a page.
var namedPort = regexp.MustCompile(`(:|port"?: )([0-9]{4,5})\b`)

// session is a shell in which somebody types what pages say, block after block, on a
// Temporal server that knows nothing of ours.
type session struct {
	t         *testing.T
	dir, root string
	server    *devserver.Server
	ports     map[string]string // that pages name, with those that stand for them here
	in        io.Writer
	lines     <-chan string // of what it prints, closed with the shell
	log       output.Log    // of all that is said, also by the workers
	blocks    int
}

func newSession(t *testing.T) *session {
	t.Helper()
	root, err := devserver.Root()
	require.NoError(t, err)
	s := &session{t: t, dir: t.TempDir(), root: root}
	for _, name := range []string{"worker", "starter", "temporal"} {
		require.FileExists(t, filepath.Join(root, "bin", name), "`make test-runbooks` builds it")
	}
	require.NoError(t, os.Symlink(filepath.Join(root, "bin"), s.path("bin")))
	s.server, err = devserver.StartBare(t.Context())
	require.NoError(t, err)
	t.Cleanup(func() { _ = s.server.Stop() })
	_, temporal, _ := strings.Cut(s.server.Address, ":")
	s.ports = map[string]string{"7233": temporal}
	s.open()
	return s
}

// open starts the shell. The end of the test ends it and what it has started.
func (s *session) open() {
	s.t.Helper()
	cmd := exec.Command("bash", "-uo", "pipefail") //nolint:noctx // it ends with the test
	cmd.Dir, cmd.Stderr, cmd.SysProcAttr = s.dir, &s.log, &syscall.SysProcAttr{Setpgid: true}
	for _, entry := range os.Environ() {
		if !strings.HasPrefix(entry, "TEMPORAL_") && !strings.HasPrefix(entry, "EGRESSFLEET_") {
			cmd.Env = append(cmd.Env, entry)
		}
	}
	in, err := cmd.StdinPipe()
	require.NoError(s.t, err)
	out, err := cmd.StdoutPipe()
	require.NoError(s.t, err)
	require.NoError(s.t, cmd.Start())
	lines := make(chan string)
	s.in, s.lines = in, lines
	stop := make(chan struct{})
	go pass(out, lines, stop)
	s.t.Cleanup(func() {
		close(stop)
		_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL)
		_ = cmd.Wait()
		for _, pid := range s.instances() {
			_ = syscall.Kill(pid, syscall.SIGKILL)
		}
		if s.t.Failed() {
			s.t.Logf("the shell and its workers:\n%s", s.log.String())
		}
	})
	s.tell(`trap 'printf "\n` + ended + `%d\n" $?' EXIT`)
}

// pass hands lines on until there are no more, or nobody reads them.
func pass(from io.Reader, to chan<- string, stop <-chan struct{}) {
	defer close(to)
	for r := bufio.NewReader(from); ; {
		line, err := r.ReadString('\n')
		if err != nil {
			return
		}
		select {
		case to <- line:
		case <-stop:
			return
		}
	}
}

func (s *session) path(name string) string { return filepath.Join(s.dir, name) }

func (s *session) tell(line string) {
	s.t.Helper()
	_, err := io.WriteString(s.in, line+"\n")
	require.NoError(s.t, err)
}

// block is that of a page with the words. Each port that is given is in it, no other one
// is, and one of this test's stands for it.
func (s *session) block(page, words string, ports ...string) string {
	s.t.Helper()
	block := typed(s.t, s.root, page, words)
	var named []string
	for _, found := range namedPort.FindAllStringSubmatch(block, -1) {
		named = append(named, found[2])
	}
	slices.Sort(named)
	require.ElementsMatch(s.t, ports, slices.Compact(named), "ports in\n%s", block)
	return namedPort.ReplaceAllStringFunc(block, func(found string) string {
		at := strings.LastIndexAny(found, ": ") + 1
		return found[:at] + s.port(found[at:])
	})
}

// port is one of this test's, for one of a page.
func (s *session) port(named string) string {
	s.t.Helper()
	if s.ports[named] == "" {
		s.ports[named] = strconv.Itoa(port(s.t))
	}
	return s.ports[named]
}

// types runs a block, which must succeed; what it sets is there for the next one.
func (s *session) types(block string) string {
	s.t.Helper()
	said, code := s.run("set -e\n. ./%s </dev/null\nset +e\nprintf '\\n"+ended+"%%d\\n' 0", block)
	require.Zero(s.t, code, block)
	return said
}

// tries runs a block, and reports whether it has succeeded; what it sets goes with it.
func (s *session) tries(block string) (string, bool) {
	s.t.Helper()
	said, code := s.run("(set -e; . ./%s) </dev/null; printf '\\n"+ended+"%%d\\n' $?", block)
	return said, code == 0
}

// run has the shell read a file with the block: what the block starts must not read the
// lines that are typed after it.
func (s *session) run(format, block string) (string, int) {
	s.t.Helper()
	s.blocks++
	name := fmt.Sprintf("block-%d", s.blocks)
	require.NoError(s.t, os.WriteFile(s.path(name), []byte(block), 0o600))
	s.tell(fmt.Sprintf(format, name))
	late := time.After(soon)
	for said := ""; ; {
		select {
		case line, is := <-s.lines:
			require.True(s.t, is, "the shell has ended\n%s", block)
			if number, is := strings.CutPrefix(strings.TrimSpace(line), ended); is {
				code, err := strconv.Atoi(number)
				require.NoError(s.t, err)
				return strings.TrimSpace(said), code
			}
			said += line
			_, _ = s.log.Write([]byte(line))
		case <-late:
			require.Fail(s.t, "it does not end", block)
		}
	}
}
