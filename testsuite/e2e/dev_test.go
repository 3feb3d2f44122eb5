package e2e

import (
	"bufio"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// devRun is one run of what `make run` calls.
type devRun struct {
	t    *testing.T
	cmd  *exec.Cmd
	page []string // what was printed until it was ready
	rest chan struct{}
}

// devEnv gives a run a folder and ports of its own.
func devEnv(t *testing.T, dir string) []string {
	t.Helper()
	env := append(os.Environ(), "EGRESSFLEET_DEV_DIR="+dir)
	for _, name := range []string{"API", "METRICS", "TEMPORAL", "UI", "ECHO"} {
		env = append(env, "EGRESSFLEET_"+name+"_PORT="+strconv.Itoa(freePort(t)))
	}
	return env
}

// startDev runs the fleet of a laptop and reads its output up to the last line.
func startDev(t *testing.T, env []string, args ...string) *devRun {
	t.Helper()
	args = append([]string{"dev"}, args...)
	r := &devRun{t: t, cmd: exec.Command(filepath.Join(bin, "starter"), args...), rest: make(chan struct{})}
	r.cmd.Env = env
	out, err := r.cmd.StdoutPipe()
	require.NoError(t, err)
	r.cmd.Stderr = r.cmd.Stdout
	require.NoError(t, r.cmd.Start())
	t.Cleanup(func() { _ = r.cmd.Process.Kill() })
	lines := bufio.NewScanner(out)
	for lines.Scan() {
		r.page = append(r.page, lines.Text())
		if lines.Text() == "egressfleet is ready" {
			go func() { defer close(r.rest); _, _ = io.Copy(io.Discard, out) }()
			return r
		}
	}
	require.Fail(t, "it ended before it was ready", strings.Join(r.page, "\n"))
	return nil
}

// interrupt is Ctrl-C.
func (r *devRun) interrupt() {
	r.t.Helper()
	require.NoError(r.t, r.cmd.Process.Signal(syscall.SIGINT))
	<-r.rest
	require.NoError(r.t, r.cmd.Wait(), "Ctrl-C is a clean end")
}

// curl returns the proxy and the URL of the line that can be pasted.
func (r *devRun) curl() (proxy, url string) {
	r.t.Helper()
	line := regexp.MustCompile(`curl .*-x (http://\S+) (http://\S+)`)
	for _, text := range r.page {
		if m := line.FindStringSubmatch(text); m != nil {
			return m[1], m[2]
		}
	}
	require.Fail(r.t, "there is no curl line", strings.Join(r.page, "\n"))
	return "", ""
}

func TestTheDevelopmentFleetStartsStopsAndIsFoundAgain(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "dev")
	env := devEnv(t, dir)
	instances := filepath.Join(dir, "instances")
	t.Cleanup(func() { (&world{t: t, instances: instances}).killInstances() })

	run := startDev(t, env)
	proxy, url := run.curl()
	require.Contains(t, fetchURL(t, proxy, url), "ok", "the line that is printed works when pasted")
	first := processesUnder(t, instances)
	require.Len(t, first, 2)

	second := exec.CommandContext(t.Context(), filepath.Join(bin, "starter"), "dev")
	second.Env = env
	out, err := second.CombinedOutput()
	require.Error(t, err, "one at a time")
	require.Contains(t, string(out), dir)

	begin := time.Now()
	run.interrupt()
	t.Logf("stopped after %s", time.Since(begin))
	require.Equal(t, first, processesUnder(t, instances), "the instances stay")

	run = startDev(t, env)
	require.Equal(t, first, processesUnder(t, instances), "and are found again")
	again, _ := run.curl()
	require.Equal(t, proxy, again)
	run.interrupt()

	clean := exec.CommandContext(t.Context(), filepath.Join(bin, "starter"), "dev", "clean")
	clean.Env = env
	out, err = clean.CombinedOutput()
	require.NoError(t, err, string(out))
	require.Empty(t, processesUnder(t, instances))
	require.NoDirExists(t, dir)
}

func TestAPortInUseIsNamedWithItsVariable(t *testing.T) {
	t.Parallel()
	w := newWorld(t) // its server has a port in use
	_, port, _ := strings.Cut(w.server.Address, ":")
	cmd := exec.CommandContext(t.Context(), filepath.Join(bin, "starter"), "dev")
	cmd.Env = append(devEnv(t, filepath.Join(t.TempDir(), "dev")), "EGRESSFLEET_API_PORT="+port)
	out, err := cmd.CombinedOutput()
	require.Error(t, err)
	require.Contains(t, string(out), port)
	require.Contains(t, string(out), "EGRESSFLEET_API_PORT")
}
