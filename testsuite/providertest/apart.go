package providertest

import (
	"bytes"
	"encoding/json"
	"fmt"
	"log/slog"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// apartEnv makes a test binary run one row in a process of its own, where output,
// environment and defaults are that row's alone. Its value is a job.
const apartEnv = "EGRESSFLEET_PROVIDERTEST_APART"

// job says which row of which call of a test runs apart, and where its report goes.
type job struct {
	row    string
	turn   int
	report string
}

func (j job) String() string { return fmt.Sprintf("%s:%d:%s", j.row, j.turn, j.report) }

// apartJob is the job of this process; none in a usual one.
var apartJob = sync.OnceValues(func() (job, bool) { return parseJob(os.Getenv(apartEnv)) })

func parseJob(text string) (job, bool) {
	row, rest, _ := strings.Cut(text, ":")
	turn, report, ok := strings.Cut(rest, ":")
	n, err := strconv.Atoi(turn)
	return job{row, n, report}, ok && err == nil
}

// elsewhere reports whether this process is there for another row only.
func elsewhere(row string) bool {
	j, ok := apartJob()
	return ok && j.row != row
}

// turns counts how often a test has come to a row, so that a test which runs one row
// over several providers means the same one in both processes.
var turns = struct {
	sync.Mutex
	seen map[string]int
}{seen: map[string]int{}}

func turn(t *testing.T, row string) int {
	turns.Lock()
	defer turns.Unlock()
	key := t.Name() + ":" + row
	turns.seen[key]++
	if turns.seen[key] == 1 {
		t.Cleanup(func() { // the same test again begins anew
			turns.Lock()
			defer turns.Unlock()
			delete(turns.seen, key)
		})
	}
	return turns.seen[key]
}

// apart runs the row in a process of its own and reports what went wrong there. What
// that process printed meanwhile is wrong, too.
func (s *scene) apart(row string, run func(*scene)) {
	s.Helper()
	mine := job{row: row, turn: turn(s.host, row)}
	if here, ok := apartJob(); ok {
		if here.row == mine.row && here.turn == mine.turn {
			s.reported(here, run)
		}
		return
	}
	mine.report = filepath.Join(s.host.TempDir(), "report")
	stdout, stderr := s.child(mine)
	for _, failure := range readReport(s, mine.report, stdout+stderr) {
		assert.Fail(s, failure)
	}
	require.Empty(s, between(stdout), "the provider writes to stdout")
	require.Empty(s, between(stderr), "the provider writes to stderr, or to a default logger")
}

// child runs this test alone in a process of its own.
func (s *scene) child(mine job) (stdout, stderr string) {
	s.Helper()
	program, err := os.Executable()
	require.NoError(s, err)
	args := []string{"-test.run=" + pattern(s.host.Name()), "-test.count=1"}
	for _, arg := range os.Args[1:] {
		if !strings.HasPrefix(arg, "-test.") {
			args = append(args, arg)
		}
	}
	cmd := exec.CommandContext(s.Context(), program, args...) //nolint:gosec // the program that runs
	// The race detector waits a second at the end of each process otherwise.
	cmd.Env = append(os.Environ(), apartEnv+"="+mine.String(), "GORACE=atexit_sleep_ms=0 "+os.Getenv("GORACE"))
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	_ = cmd.Run() // the report says what came of it
	return out.String(), errs.String()
}

// pattern matches one test, and of its subtests what the row is in.
func pattern(name string) string {
	parts := strings.Split(name, "/")
	for i, part := range parts {
		parts[i] = "^" + regexp.QuoteMeta(part) + "$"
	}
	return strings.Join(parts, "/")
}

// The lines between which everything printed is the provider's.
const (
	printBegins = "\n>>> providertest begins\n"
	printEnds   = "\n<<< providertest ends\n"
)

func mark(line string) {
	for _, f := range []*os.File{os.Stdout, os.Stderr} {
		_, _ = f.WriteString(line)
	}
}

func between(printed string) string {
	_, rest, _ := strings.Cut(printed, printBegins)
	inside, _, _ := strings.Cut(rest, printEnds)
	return inside
}

// reported runs the row here and writes down what it finds.
func (s *scene) reported(here job, run func(*scene)) {
	r := &recorder{ctx: s.Context()}
	outer := s.T
	s.T = r
	slog.SetLogLoggerLevel(slog.Level(math.MinInt)) // the default logger hides nothing
	mark(printBegins)
	alone(func() { run(s) })
	mark(printEnds)
	for _, cleanup := range slices.Backward(r.cleanups) {
		alone(cleanup)
	}
	s.T = outer
	data, err := json.Marshal(append([]string{}, r.failures...))
	require.NoError(s, err)
	const mode = 0o600
	require.NoError(s, os.WriteFile(here.report, data, mode))
}

func readReport(t T, path, printed string) []string {
	t.Helper()
	data, err := os.ReadFile(path) //nolint:gosec // a file of ours
	require.NoError(t, err, "the row's own process ended without a report: %s", printed)
	var failures []string
	require.NoError(t, json.Unmarshal(data, &failures))
	return failures
}
