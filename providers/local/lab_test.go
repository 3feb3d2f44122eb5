package local_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/egressfleet/egressfleet/providers"
	"github.com/egressfleet/egressfleet/providers/local"
)

const (
	providerName = "here"
	installation = "test"

	soon = 20 * time.Second // for what takes seconds on an idle machine
	tick = 20 * time.Millisecond
)

func ctxForever() context.Context { return context.Background() }

// lab is a provider on a folder of its own. At the end of the test it deletes every
// instance and checks that no process and no file is left.
type lab struct {
	*testing.T
	providers.Provider
	dir string
	cfg local.Config
}

func newLab(t *testing.T, change ...func(*local.Config)) *lab {
	t.Helper()
	cfg := local.Config{Dir: t.TempDir()}
	for _, c := range change {
		c(&cfg)
	}
	l := &lab{T: t, dir: cfg.Dir, cfg: cfg}
	l.Provider = l.reopen()
	t.Cleanup(l.cleanUp)
	return l
}

// ownRange returns the first three numbers of addresses that no other test uses, nor
// another run on this machine, but by a rare chance.
func ownRange() string { return fmt.Sprintf("127.%d.%d", 64+rand.N(64), rand.N(256)) }

func addresses(cidr string) func(*local.Config) {
	return func(cfg *local.Config) { cfg.AddressRange = cidr }
}

func oneAddress(cfg *local.Config) { cfg.AddressRange = "127.0.0.1/32" }

// reopen returns another provider on the same folder, as after a restart.
func (l *lab) reopen() providers.Provider {
	l.Helper()
	p, err := local.New(l.Context(), providerName, installation, l.cfg)
	require.NoError(l, err)
	return p
}

func (l *lab) cleanUp() {
	ctx := context.WithoutCancel(l.Context())
	for _, name := range l.folders() {
		log, _ := os.ReadFile(l.path(name, "log"))
		require.NotContains(l, string(log), "DATA RACE", "in the process of %s", name)
		require.NoError(l, l.Delete(ctx, "local/"+name))
	}
	require.Empty(l, l.folders())
	require.Empty(l, l.files())
	require.Empty(l, l.processes())
}

// root is the folder of all instances.
func (l *lab) root() string { return filepath.Join(l.dir, providerName, "instances") }

func (l *lab) path(name, file string) string { return filepath.Join(l.root(), name, file) }

func (l *lab) folders() []string {
	entries, _ := os.ReadDir(l.root())
	var names []string
	for _, e := range entries {
		names = append(names, e.Name())
	}
	return names
}

// files lists every file below dir.
func (l *lab) files() []string {
	var files []string
	_ = filepath.WalkDir(l.dir, func(path string, e fs.DirEntry, err error) error {
		if err == nil && !e.IsDir() {
			files = append(files, path)
		}
		return nil
	})
	return files
}

// processes lists the pids of the instances of this lab.
func (l *lab) processes() []int {
	l.Helper()
	return l.processesIn(l.root())
}

// processesIn lists the pids of the instances below a folder, by their command line.
func (l *lab) processesIn(folder string) []int {
	l.Helper()
	out, err := exec.Command("pgrep", "-f", "--", "--dir "+folder).Output()
	if exit := new(exec.ExitError); err != nil {
		require.ErrorAs(l, err, &exit)
		require.Equal(l, 1, exit.ExitCode(), "pgrep fails")
	}
	var pids []int
	for word := range strings.FieldsSeq(string(out)) {
		pid, err := strconv.Atoi(word)
		require.NoError(l, err)
		pids = append(pids, pid)
	}
	return pids
}

func (l *lab) create(req providers.CreateRequest) string {
	l.Helper()
	id, err := l.Create(l.Context(), req)
	require.NoError(l, err)
	return id
}

func (l *lab) get(id string) providers.Instance {
	l.Helper()
	found, err := l.Get(l.Context(), id)
	require.NoError(l, err)
	return *found
}

// running creates an instance and returns it.
func (l *lab) running(uid string) providers.Instance {
	l.Helper()
	found := l.get(l.create(request(uid)))
	require.Equal(l, providers.StateRunning, found.State)
	return found
}

func (l *lab) inventory() providers.Inventory {
	l.Helper()
	lister, ok := providers.As[providers.Inventorier](l.Provider)
	require.True(l, ok)
	inventory, err := lister.Inventory(l.Context())
	require.NoError(l, err)
	return inventory
}

func (l *lab) check(ctx context.Context) providers.TargetStatus {
	l.Helper()
	checker, ok := providers.As[providers.Checker](l.Provider)
	require.True(l, ok)
	status := checker.Check(ctx)
	require.Len(l, status, 1)
	return status[0]
}

// pid reads what the process of an instance said about itself.
func (l *lab) pid(name string) int {
	l.Helper()
	alive, err := os.ReadFile(l.path(name, "alive"))
	require.NoError(l, err)
	line, _, _ := bytes.Cut(alive, []byte("\n"))
	pid, err := strconv.Atoi(strings.TrimPrefix(string(line), "pid "))
	require.NoError(l, err)
	return pid
}

// kill ends the process of an instance behind the provider's back.
func (l *lab) kill(name string) {
	l.Helper()
	require.NoError(l, syscall.Kill(l.pid(name), syscall.SIGKILL))
	require.Eventually(l, func() bool {
		return l.get("local/"+name).State == providers.StateStopped
	}, soon, tick)
}

// writeRecord puts a record where a Create that was cut off would have left it.
func (l *lab) writeRecord(req providers.CreateRequest, change ...func(map[string]any)) {
	l.Helper()
	now := time.Now().UTC().Format(time.RFC3339Nano)
	rec := map[string]any{
		"version": 1, "name": req.Name, "address": ownRange() + ".1", "port": req.Port, "createdAt": now, "startingAt": now,
		"marks": map[string]string{
			"proxy-operator-managed": "true", "proxy-operator-uid": req.UID,
			"proxy-operator-installation": req.Installation, "proxy-operator-owner": req.Owner,
			"proxy-operator-spec": req.SpecMark,
		},
	}
	for _, c := range change {
		c(rec)
	}
	data, err := json.Marshal(rec)
	require.NoError(l, err)
	require.NoError(l, os.MkdirAll(filepath.Join(l.root(), req.Name), 0o700))
	require.NoError(l, os.WriteFile(l.path(req.Name, "record.json"), data, 0o600))
}

func at(address string) func(map[string]any) {
	return func(rec map[string]any) { rec["address"] = address }
}

// old makes a record look as if its process should have been there long ago.
func old(rec map[string]any) {
	rec["startingAt"] = time.Now().Add(-time.Hour).UTC().Format(time.RFC3339Nano)
}

// through returns a client that goes through an instance.
func through(t *testing.T, i providers.Instance, change ...func(*http.Transport)) *http.Client {
	t.Helper()
	transport := &http.Transport{
		Proxy: http.ProxyURL(&url.URL{Scheme: "http", Host: i.IP + ":3128"}),
	}
	for _, c := range change {
		c(transport)
	}
	t.Cleanup(transport.CloseIdleConnections)
	return &http.Client{Transport: transport, Timeout: soon}
}

func (l *lab) readRecord(name string) map[string]any {
	l.Helper()
	data, err := os.ReadFile(l.path(name, "record.json"))
	require.NoError(l, err)
	var rec map[string]any
	require.NoError(l, json.Unmarshal(data, &rec))
	return rec
}
