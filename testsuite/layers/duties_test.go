package layers_test

import (
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/egressfleet/egressfleet/testsuite/layers"
)

func faults(t *testing.T, path string, source any) []layers.Fault {
	t.Helper()
	files := token.NewFileSet()
	file, err := parser.ParseFile(files, path, source, 0)
	require.NoError(t, err)
	return layers.Duties(files, file)
}

// exception is what one file may do all the same.
type exception struct{ file, what, because string }

func exceptions() []exception {
	const process = "it is the process of an instance, which has no caller"
	return []exception{
		{"local/serve.go", "context.Background", process},
		{"local/serve.go", "os.Stderr", process},
		{"local/process.go", "os.LookupEnv", "the variables of the Go runtime are passed on to the process"},
	}
}

// TestProvidersKeepToTheirJob applies the rules to every provider.
func TestProvidersKeepToTheirJob(t *testing.T) {
	t.Parallel()
	needed := map[exception]bool{}
	seen := 0
	for _, path := range providerFiles(t) {
		seen++
		for _, fault := range faults(t, filepath.Join("../../providers", path), nil) {
			if e, ok := excepted(path, fault.What); ok {
				needed[e] = true
				continue
			}
			t.Errorf("providers/%s %s", path, fault)
		}
	}
	require.Greater(t, seen, 10, "the providers were seen")
	for _, e := range exceptions() {
		require.True(t, needed[e], "the exception of %s for %s is not needed any more", e.what, e.file)
		require.NotEmpty(t, e.because)
	}
}

func excepted(file, what string) (exception, bool) {
	for _, e := range exceptions() {
		if e.file == file && e.what == what {
			return e, true
		}
	}
	return exception{}, false
}

// providerFiles lists the files of all types, but for their tests.
func providerFiles(t *testing.T) (paths []string) {
	t.Helper()
	providers := "../../providers"
	require.NoError(t, filepath.WalkDir(providers, func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		relative, err := filepath.Rel(providers, path)
		room, _, nested := strings.Cut(filepath.ToSlash(relative), "/")
		shared := !nested || room == "all" || room == "decorators" || room == "registry"
		if !entry.IsDir() && !shared && strings.HasSuffix(path, ".go") && !strings.HasSuffix(path, "_test.go") {
			paths = append(paths, filepath.ToSlash(relative))
		}
		return err
	}))
	return paths
}

func TestDuties(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		imports string // separated by spaces, each as after the word import
		code    string
		want    string // of the one fault; "" for none
	}{
		"the logger of the call is right": {
			`"log/slog"`, `func f(l *slog.Logger) { l.Info("x", slog.String("a", "b")) }`, "",
		},
		"the default logger":               {`"log/slog"`, `var _ = slog.Default()`, "log/slog.Default"},
		"a function of the default logger": {`"log/slog"`, `func f() { slog.Info("x") }`, "log/slog.Info"},
		"with a context, too": {
			`"log/slog"`, `func f() { slog.InfoContext(nil, "x") }`, "log/slog.InfoContext",
		},
		"replacing the default":             {`"log/slog"`, `func f() { slog.SetDefault(nil) }`, "log/slog.SetDefault"},
		"under another name":                {`quiet "log/slog"`, `func f() { quiet.Info("x") }`, "log/slog.Info"},
		"a variable that is called slog":    {``, `func f(slog interface{ Info() }) { slog.Info() }`, ""},
		"a variable that hides the package": {`"log"`, `func f(log interface{ Print() }) { log.Print() }`, ""},
		"the oldest logger":                 {`"log"`, `func f() { log.Print("x") }`, "log.Print"},
		"printing":                          {`"fmt"`, `func f() { fmt.Println("x") }`, "fmt.Println"},
		"formatting is right":               {`"fmt"`, `var _ = fmt.Sprintf("%d", 1)`, ""},
		"printing without a package":        {``, `func f() { println("x") }`, "println"},
		"a function of one's own":           {``, `func print(string) {}; func f() { print("x") }`, ""},
		"writing to stdout":                 {`"os"`, `func f() { os.Stdout.Write(nil) }`, "os.Stdout"},
		"handing stderr on":                 {`"os"`, `var _ = os.Stderr`, "os.Stderr"},
		"a context of one's own":            {`"context"`, `func f() { g(context.Background()) }`, "context.Background"},
		"a context to be done":              {`"context"`, `func f() { g(context.TODO()) }`, "context.TODO"},
		"the caller's context": {
			`"context"`, `func f(ctx context.Context) { g(context.WithoutCancel(ctx)) }`, "",
		},
		"the function is handed on":      {`"context"`, `var _ = context.Background`, "context.Background"},
		"a logger is kept":               {`"log/slog"`, `type p struct { l *slog.Logger }`, "a kept log/slog.Logger"},
		"a logger is embedded":           {`"log/slog"`, `type p struct { *slog.Logger }`, "a kept log/slog.Logger"},
		"a handler is kept":              {`"log/slog"`, `type p struct { h slog.Handler }`, "a kept log/slog.Handler"},
		"a logger is kept in a variable": {`"log/slog"`, `var l *slog.Logger`, "a kept log/slog.Logger"},
		"a context is kept": {
			`"context"`, `type p struct { ctx context.Context }`, "a kept context.Context",
		},
		"a context is kept within a func": {
			`"context"`, `func f() { type c struct { context.Context } }`, "a kept context.Context",
		},
		"a context is an argument":         {`"context"`, `type p interface { f(ctx context.Context) }`, ""},
		"the environment":                  {`"os"`, `var _ = os.Getenv("X")`, "os.Getenv"},
		"the environment, if it is there":  {`"os"`, `func f() { os.LookupEnv("X") }`, "os.LookupEnv"},
		"the whole environment":            {`"os"`, `var _ = os.Environ()`, "os.Environ"},
		"the environment by a system call": {`"syscall"`, `func f() { syscall.Getenv("X") }`, "syscall.Getenv"},
		"the arguments of the process":     {`"os"`, `var _ = os.Args[1]`, "os.Args"},
		"a flag of the process":            {`"flag"`, `var _ = flag.String("x", "", "")`, "flag.String"},
		"a flag into a variable":           {`"flag"`, `func f(x *int) { flag.IntVar(x, "x", 0, "") }`, "flag.IntVar"},
		"the flags of the process":         {`"flag"`, `var _ = flag.CommandLine`, "flag.CommandLine"},
		"flags of a command of its own":    {`"flag"`, `var _ = flag.NewFlagSet("x", flag.ContinueOnError)`, ""},
		"a payload in memory":              {`"io"`, `func f(r io.Reader) { io.ReadAll(r) }`, "io.ReadAll"},
		"a payload of a size": {
			`"io"`, `func f(r io.Reader) { io.ReadAll(io.LimitReader(r, 9)) }`, "",
		},
		"a payload behind another reader": {
			`"io"`, `func f(r io.Reader) { io.ReadAll(io.TeeReader(r, nil)) }`, "io.ReadAll",
		},
		"scratch in the temporary folder":    {`"os"`, `func f() { os.CreateTemp("", "x") }`, ""},
		"a scratch file elsewhere":           {`"os"`, `func f() { os.CreateTemp("/var/tmp", "x") }`, "os.CreateTemp"},
		"a scratch folder beside the worker": {`"os"`, `func f() { os.MkdirTemp(".", "x") }`, "os.MkdirTemp"},
		"a scratch folder that is set":       {`"os"`, `func f(dir string) { os.MkdirTemp(dir, "x") }`, "os.MkdirTemp"},
		"a metric": {
			`_ "github.com/prometheus/client_golang/prometheus"`, ``,
			"github.com/prometheus/client_golang/prometheus",
		},
		"a metric of another kind": {
			`_ "go.opentelemetry.io/otel/metric"`, ``, "go.opentelemetry.io/otel/metric",
		},
		"a metric of the standard library": {`_ "expvar"`, ``, "expvar"},
		"a tracer of one's own": {
			`_ "go.opentelemetry.io/otel/sdk/trace"`, ``, "go.opentelemetry.io/otel/sdk/trace",
		},
		"child spans are right":       {`_ "go.opentelemetry.io/otel/trace"`, ``, ""},
		"names without their package": {`. "log/slog"`, ``, "log/slog"},
		"the span of an operation":    {``, `const name = "provider.create"`, `"provider.create"`},
		"the metric of the decorators": {
			``, `const name = "egressfleet_provider_requests_total"`, `"egressfleet_provider_requests_total"`,
		},
		"a span of a backend call": {``, `const name = "gcp.Insert"`, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			source := "package p\n"
			if c.imports != "" {
				source += "import " + c.imports + "\n"
			}
			found := faults(t, "p.go", source+c.code+"\n")
			if c.want == "" {
				require.Empty(t, found)
				return
			}
			require.Len(t, found, 1)
			require.Equal(t, c.want, found[0].What)
			require.NotEmpty(t, found[0].Why, "it says what to do instead")
			require.Positive(t, found[0].Line)
		})
	}
}
