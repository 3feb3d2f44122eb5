package local_test

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"strconv"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/egressfleet/egressfleet/providers"
	"github.com/egressfleet/egressfleet/providers/local"
)

func TestAKilledProcessIsStopped(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	i := l.running("u")
	l.kill(request("u").Name)

	found := l.get(i.ID)
	require.Empty(t, found.IP, "nobody may be sent there")
	require.Contains(t, found.Reason, "ended")
	require.Equal(t, i.CreatedAt, found.CreatedAt)

	// Create must not revive it: the workflow deletes what is Stopped.
	require.Equal(t, i.ID, l.create(request("u")))
	require.Equal(t, providers.StateStopped, l.get(i.ID).State)

	require.NoError(t, l.Delete(t.Context(), i.ID))
	require.Equal(t, providers.StateRunning, l.running("u").State)
}

func TestAPidThatSomebodyElseHasIsNoProcessOfOurs(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	i := l.running("u")
	name := request("u").Name
	l.kill(name)
	bystander := exec.Command("sleep", "60")
	require.NoError(t, bystander.Start())
	ended := make(chan struct{})
	go func() { defer close(ended); _ = bystander.Wait() }()
	t.Cleanup(func() { _ = bystander.Process.Kill(); <-ended })
	alive := fmt.Sprintf("pid %d\nready\n", bystander.Process.Pid)
	require.NoError(t, os.WriteFile(l.path(name, "alive"), []byte(alive), 0o600))

	require.Equal(t, providers.StateStopped, l.get(i.ID).State)
	require.NoError(t, l.Delete(t.Context(), i.ID))
	require.NoError(t, bystander.Process.Signal(syscall.Signal(0)), "it still lives")
	select {
	case <-ended:
		t.Fatal("Delete ended a process that is not its own")
	default:
	}
}

func TestDeleteKillsWhatDoesNotListen(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	i := l.running("u")
	local.Hurry(l.Provider, soon, time.Second)
	require.NoError(t, syscall.Kill(l.pid(request("u").Name), syscall.SIGSTOP))
	require.NoError(t, l.Delete(t.Context(), i.ID))
	require.Empty(t, l.processes())
}

func TestACreateThatWasCutOffIsTakenUp(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		change func(map[string]any)
		state  providers.State
	}{
		"a moment ago": {func(map[string]any) {}, providers.StateProvisioning},
		"long ago":     {old, providers.StateStopped},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l := newLab(t)
			req, address := request("u"), ownRange()+".7"
			l.writeRecord(req, at(address), c.change)
			id := "local/" + req.Name
			require.Equal(t, c.state, l.get(id).State)
			require.Len(t, l.inventory().Instances, 1, "it is listed, so it can be collected")

			require.Equal(t, id, l.create(req))
			found := l.get(id)
			require.Equal(t, providers.StateRunning, found.State)
			require.Equal(t, address, found.IP, "the address that the record claimed")
			require.Len(t, l.processes(), 1)
		})
	}
}

func TestACreateThatWasCutOffTakesAnotherAddressIfItMust(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	req, address := request("u"), ownRange()+".7"
	l.writeRecord(req, at(address))
	somebody, err := net.Listen("tcp", address+":3128")
	require.NoError(t, err)
	defer func() { _ = somebody.Close() }()

	found := l.get(l.create(req))
	require.Equal(t, providers.StateRunning, found.State)
	require.NotEqual(t, address, found.IP)
	require.Equal(t, found.IP, l.readRecord(req.Name)["address"])
}

func TestAForeignRecordIsRefusedAndNotStarted(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	l.writeRecord(request("u"))
	other := request("u")
	other.UID, other.Installation = "wanted-uid", "wanted-installation"
	_, err := l.Create(t.Context(), other)
	require.ErrorIs(t, err, providers.ErrPermanent)
	for _, word := range []string{`"u"`, installation, "wanted-uid", "wanted-installation"} {
		require.ErrorContains(t, err, word)
	}
	require.Empty(t, l.processes())
}

func TestARecordThatMakesNoSenseIsNeitherGoneNorListed(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(map[string]any){
		"not JSON at all":         nil,
		"a later version":         func(rec map[string]any) { rec["version"] = 99 },
		"the name of another":     func(rec map[string]any) { rec["name"] = "proxy-other" },
		"an address outside":      func(rec map[string]any) { rec["address"] = "192.0.2.1" },
		"no address":              func(rec map[string]any) { delete(rec, "address") },
		"a port that is none":     func(rec map[string]any) { rec["port"] = 0 },
		"a time that is not one":  func(rec map[string]any) { rec["createdAt"] = "yesterday" },
		"a list in a text's seat": func(rec map[string]any) { rec["name"] = []string{"x"} },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l := newLab(t)
			healthy := l.running("healthy")
			req := request("u")
			l.writeRecord(req, func(rec map[string]any) {
				if change != nil {
					change(rec)
				}
			})
			path := l.path(req.Name, "record.json")
			if change == nil {
				require.NoError(t, os.WriteFile(path, []byte("{\"version\""), 0o600))
			}
			_, err := l.Get(t.Context(), "local/"+req.Name)
			require.ErrorIs(t, err, providers.ErrPermanent)
			require.ErrorContains(t, err, path)
			_, err = l.Create(t.Context(), req)
			require.ErrorIs(t, err, providers.ErrPermanent)
			require.ErrorContains(t, err, path)

			inventory := l.inventory()
			require.Equal(t, []string{"local/" + req.Name}, inventory.Omitted)
			require.Len(t, inventory.Instances, 1, "the others are listed all the same")
			require.Equal(t, healthy.ID, inventory.Instances[0].ID)

			require.NoError(t, l.Delete(t.Context(), "local/"+req.Name), "a person has a way out")
			require.NoFileExists(t, path)
		})
	}
}

func TestAFolderWithoutARecord(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	l.running("healthy")
	req := request("u")
	id := "local/" + req.Name
	require.NoError(t, os.Mkdir(l.path(req.Name, ""), 0o700))
	require.NoError(t, os.WriteFile(l.path(req.Name, "record.json.tmp"), []byte("{"), 0o600))

	_, err := l.Get(t.Context(), id)
	require.ErrorIs(t, err, providers.ErrNotFound)
	require.Empty(t, l.inventory().Leftovers, "a Create may be about to fill it")

	hourAgo := time.Now().Add(-time.Hour)
	require.NoError(t, os.Chtimes(l.path(req.Name, ""), hourAgo, hourAgo))
	left := l.inventory().Leftovers
	require.Len(t, left, 1)
	require.Equal(t, id, left[0].ID)
	require.Equal(t, "folder", left[0].Kind)
	require.WithinDuration(t, hourAgo, left[0].CreatedAt, time.Second)

	require.NoError(t, l.Delete(t.Context(), id))
	require.Empty(t, l.inventory().Leftovers)

	require.NoError(t, os.Mkdir(l.path(req.Name, ""), 0o700))
	require.Equal(t, providers.StateRunning, l.get(l.create(req)).State, "Create fills one that is there")
}

func TestAProcessWhoseRecordWasRemovedIsEndedByCreateAndDelete(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	i := l.running("u")
	name := request("u").Name
	lost := l.pid(name)
	require.NoError(t, os.Remove(l.path(name, "record.json")))
	_, err := l.Get(t.Context(), i.ID)
	require.ErrorIs(t, err, providers.ErrNotFound)

	l.create(request("u"))
	require.Equal(t, []int{l.pid(name)}, l.processes(), "the lost one is gone")
	require.NotEqual(t, lost, l.pid(name))

	require.NoError(t, os.Remove(l.path(name, "record.json")))
	require.NoError(t, l.Delete(t.Context(), i.ID))
	require.Empty(t, l.processes())
}

func TestAProcessEndsWhenItsFolderIsRemoved(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	l.running("u")
	require.NoError(t, os.RemoveAll(l.path(request("u").Name, "")))
	require.Eventually(t, func() bool { return len(l.processes()) == 0 }, soon, tick)
}

func TestInstancesOutliveTheirWorker(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	out, err := l.worker(1).Output()
	require.NoError(t, err)
	require.Equal(t, "local/"+request(workerUID(0)).Name+"\n", string(out))

	found := l.running(workerUID(0)) // Create finds it
	require.Equal(t, providers.StateRunning, found.State)
	require.Len(t, l.processes(), 1)
	target := newTarget(t)
	require.Equal(t, found.IP, target.seenBy(t, through(t, found)))
}

// A shell that runs the worker in a pipe must see its end when the worker ends.
func TestInstancesKeepNoPipeOfTheirWorker(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	cmd := l.worker(1)
	reader, writer, err := os.Pipe()
	require.NoError(t, err)
	t.Cleanup(func() { _ = reader.Close() })
	for range 8 { // the first three numbers are the instance's own
		cmd.ExtraFiles = append(cmd.ExtraFiles, writer)
	}
	require.NoError(t, cmd.Run())
	require.NoError(t, writer.Close())
	require.Len(t, l.processes(), 1)
	require.NoError(t, reader.SetReadDeadline(time.Now().Add(soon)))
	_, err = reader.Read(make([]byte, 1))
	require.ErrorIs(t, err, io.EOF)
}

func TestAWorkerKilledInTheMiddleLeavesNoneTwice(t *testing.T) {
	t.Parallel()
	const many = 20
	l := newLab(t)
	cmd := l.worker(many)
	out, err := cmd.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	lines := bufio.NewScanner(out)
	for range 3 {
		require.True(t, lines.Scan())
	}
	require.NoError(t, cmd.Process.Kill())
	require.Error(t, cmd.Wait(), "killed in the middle")

	for n := range many {
		l.create(request(workerUID(n)))
	}
	listed, err := l.ListByTag(t.Context())
	require.NoError(t, err)
	require.Len(t, listed, many)
	for _, i := range listed {
		require.Equal(t, providers.StateRunning, i.State)
	}
	require.Len(t, l.processes(), many)
}

// worker is a program that creates n instances in the lab's folder and ends.
func (l *lab) worker(n int) *exec.Cmd {
	l.Helper()
	exe, err := os.Executable()
	require.NoError(l, err)
	cmd := exec.Command(exe)
	cmd.Env = append(os.Environ(), workerDir+"="+l.dir, workerCreates+"="+strconv.Itoa(n))
	cmd.Stderr = os.Stderr
	return cmd
}

// script makes a program that is started in the place of the instance.
func script(t *testing.T, text string) func(*local.Config) {
	t.Helper()
	path := t.TempDir() + "/program"
	require.NoError(t, os.WriteFile(path, []byte("#!/bin/sh\n"+text+"\n"), 0o700))
	return func(cfg *local.Config) { cfg.Executable = path }
}

func TestAProcessThatDiesAtOnceIsExplained(t *testing.T) {
	t.Parallel()
	l := newLab(t, script(t, "echo the cat ate it >&2; exit 3"))
	_, err := l.Create(t.Context(), request("u"))
	require.ErrorIs(t, err, providers.ErrTransient)
	require.ErrorContains(t, err, "exit status 3")
	require.ErrorContains(t, err, "the cat ate it")
	require.Empty(t, l.folders(), "nothing is left of it")
}

func TestAProcessThatHangsIsKilled(t *testing.T) {
	t.Parallel()
	l := newLab(t, script(t, "exec sleep 60"))
	local.Hurry(l.Provider, 100*time.Millisecond, soon)
	_, err := l.Create(t.Context(), request("u"))
	require.ErrorIs(t, err, providers.ErrTransient)
	require.ErrorContains(t, err, "not ready within 100ms")
	require.Empty(t, l.folders(), "nothing is left of it")
}

// callOff cancels a Create once its process is there, and returns the pid.
func (l *lab) callOff(req providers.CreateRequest) int {
	l.Helper()
	ctx, cancel := context.WithCancel(l.Context())
	defer cancel()
	failed := make(chan error, 1)
	go func() { _, err := l.Create(ctx, req); failed <- err }()
	require.Eventually(l, func() bool {
		alive, _ := os.ReadFile(l.path(req.Name, "alive"))
		return bytes.HasSuffix(alive, []byte("\n"))
	}, soon, tick)
	cancel()
	require.ErrorIs(l, <-failed, providers.ErrTransient)
	return l.pid(req.Name)
}

func TestACreateThatIsCalledOffReturnsAndCanBeUndone(t *testing.T) {
	t.Parallel()
	l := newLab(t, script(t, "exec sleep 60"))
	name := request("u").Name
	pid := l.callOff(request("u"))
	require.Equal(t, providers.StateProvisioning, l.get("local/"+name).State)
	require.NoError(t, l.Delete(t.Context(), "local/"+name))
	require.Eventually(t, func() bool { return syscall.Kill(pid, 0) != nil }, soon, tick)
}

func TestCreateTakesUpAProcessThatHangs(t *testing.T) {
	t.Parallel()
	l := newLab(t, script(t, "exec sleep 60"))
	pid := l.callOff(request("u"))
	require.Len(t, l.folders(), 1, "it may still become ready")

	l.cfg.Executable = "" // the upgrade that mends it
	l.Provider = l.reopen()
	local.Hurry(l.Provider, 4*time.Second, soon)
	require.NotEqual(t, pid, l.pid(l.running("u").ID[len("local/"):]))
	require.Eventually(t, func() bool { return syscall.Kill(pid, 0) != nil }, soon, tick)
}
