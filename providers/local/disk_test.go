package local_test

import (
	"context"
	"os"
	"path/filepath"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/egressfleet/egressfleet/providers"
	"github.com/egressfleet/egressfleet/providers/local"
)

func TestAFreshProviderIsEmptyAndReady(t *testing.T) {
	t.Parallel()
	l := newLab(t, func(cfg *local.Config) { cfg.Dir += "/not/there/yet" })
	listed, err := l.ListByTag(t.Context())
	require.NoError(t, err)
	require.Empty(t, listed)
	status := l.check(t.Context())
	require.True(t, status.Ready, status.Message)
	require.Equal(t, "0", status.Details["instances"])
	require.NoDirExists(t, l.dir, "looking makes nothing")
	l.running("u")
}

// What Create returned cannot be gone together with the folder of all instances:
// more likely a disk is not mounted.
func TestAMissingRootIsNeverNotFound(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	i := l.running("u")
	for name, p := range map[string]providers.Provider{"the same worker": l.Provider, "a restarted worker": l.reopen()} {
		mount := l.unmount(t)
		_, err := p.Get(t.Context(), i.ID)
		require.ErrorIs(t, err, providers.ErrTransient, name)
		require.ErrorContains(t, err, l.root())
		require.ErrorContains(t, err, "mount it")
		require.ErrorIs(t, p.Delete(t.Context(), i.ID), providers.ErrTransient, name)
		mount()
	}
	require.Equal(t, providers.StateRunning, l.get(i.ID).State)
}

func TestARootThatVanishedIsNotMadeAgain(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	l.running("u")
	mount := l.unmount(t)
	_, err := l.Create(t.Context(), request("u"))
	require.ErrorIs(t, err, providers.ErrTransient)
	_, err = l.ListByTag(t.Context())
	require.ErrorIs(t, err, providers.ErrTransient)
	status := l.check(t.Context())
	require.False(t, status.Ready)
	require.Equal(t, providers.ReasonUnreachable, status.Reason)
	require.NoDirExists(t, l.dir)
	mount()
}

func TestMakingTheRootAgainSaysThatAllIsGone(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	i := l.running("u")
	require.NoError(t, os.RemoveAll(l.root()))
	_, err := l.Get(t.Context(), i.ID)
	require.ErrorIs(t, err, providers.ErrTransient)
	require.NoError(t, os.Mkdir(l.root(), 0o700))
	_, err = l.Get(t.Context(), i.ID)
	require.ErrorIs(t, err, providers.ErrNotFound)
	require.Eventually(t, func() bool { return len(l.processes()) == 0 }, soon, tick)
}

func TestARootThatCannotBeReadIsTransient(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	i := l.running("u")
	aside := l.root() + "-aside"
	require.NoError(t, os.Rename(l.root(), aside))
	require.NoError(t, os.WriteFile(l.root(), nil, 0o600)) // ENOTDIR: neither there nor missing
	_, err := l.Get(t.Context(), i.ID)
	require.ErrorIs(t, err, providers.ErrTransient)
	require.ErrorIs(t, l.Delete(t.Context(), i.ID), providers.ErrTransient)
	_, err = l.ListByTag(t.Context())
	require.ErrorIs(t, err, providers.ErrTransient)
	require.NoError(t, os.Remove(l.root()))
	require.NoError(t, os.Rename(aside, l.root()))
}

func TestWhatIsNoInstanceIsLeftAlone(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	l.running("u")
	stray := filepath.Join(l.root(), "README")
	odd := filepath.Join(l.root(), "lost+found")
	require.NoError(t, os.WriteFile(stray, nil, 0o600))
	require.NoError(t, os.Mkdir(odd, 0o700))
	inventory := l.inventory()
	require.Len(t, inventory.Instances, 1)
	require.Empty(t, inventory.Omitted)
	require.Empty(t, inventory.Leftovers)
	require.NoError(t, os.Remove(stray))
	require.NoError(t, os.Remove(odd))
}

func TestFilesAreForTheOwnerOnly(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	l.running("u")
	for _, file := range l.files() {
		info, err := os.Stat(file)
		require.NoError(t, err)
		require.Equal(t, os.FileMode(0o600), info.Mode().Perm(), file)
	}
	for _, folder := range []string{l.root(), l.path(request("u").Name, "")} {
		info, err := os.Stat(folder)
		require.NoError(t, err)
		require.Equal(t, os.FileMode(0o700), info.Mode().Perm(), folder)
	}
}

func TestCheckCounts(t *testing.T) {
	t.Parallel()
	own := ownRange() + ".0/29"
	l := newLab(t, addresses(own))
	for n := range 2 {
		l.running(strconv.Itoa(n))
	}
	before := l.files()
	status := l.check(t.Context())
	require.True(t, status.Ready, status.Message)
	require.Equal(t, providers.ReasonReachable, status.Reason)
	require.Equal(t, l.root(), status.Target)
	require.Equal(t, map[string]string{
		"addressRange": own, "instances": "2", "freeAddresses": "4", "mode": "one address per instance",
	}, status.Details)
	require.Equal(t, before, l.files(), "it writes nothing")
}

func TestCheckSaysWhichMode(t *testing.T) {
	t.Parallel()
	status := newLab(t, oneAddress).check(t.Context())
	require.Equal(t, "one address, one instance per port", status.Details["mode"])
	require.NotContains(t, status.Details, "freeAddresses")
}

func TestCheckMissesTheExecutable(t *testing.T) {
	t.Parallel()
	l := newLab(t, script(t, "exit 0"))
	require.NoError(t, os.Remove(l.cfg.Executable))
	status := l.check(t.Context())
	require.False(t, status.Ready)
	require.Equal(t, local.ReasonExecutableMissing, status.Reason)
	require.Contains(t, status.Message, l.cfg.Executable)
}

func TestCheckHonoursAnEndedContext(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	status := newLab(t).check(ctx)
	require.False(t, status.Ready)
	require.Equal(t, providers.ReasonTimeout, status.Reason)
}

// What a call left behind goes on when the disk answers: by then its caller has done
// otherwise, so it makes nothing.
func TestACreateThatADiskHeldUpMakesNothing(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	other := l.running("other")
	answer := l.stall(t)
	ctx, cancel := context.WithCancel(t.Context())
	created := make(chan error, 1)
	go func() {
		_, err := l.Create(ctx, request("u"))
		created <- err
	}()
	folder := filepath.Join(l.root(), request("u").Name)
	require.Eventually(t, func() bool {
		_, err := os.Stat(folder)
		return err == nil
	}, soon, tick, "the create has begun")
	cancel()
	require.ErrorIs(t, <-created, providers.ErrTransient)
	answer()
	require.Eventually(t, func() bool {
		_, err := os.Stat(folder)
		return os.IsNotExist(err)
	}, soon, tick, "what was left behind cleans up")
	require.Empty(t, l.processesIn(folder))
	require.Equal(t, providers.StateRunning, l.get(other.ID).State)
}
