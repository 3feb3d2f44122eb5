package kvm

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/egressfleet/egressfleet/providers"
	"github.com/egressfleet/egressfleet/providers/kvm/conn"
)

// withImage gives the configuration an image of that content, which no host has.
func (l *lab) withImage(t *testing.T, content []byte, format string) {
	t.Helper()
	file := filepath.Join(t.TempDir(), "image")
	require.NoError(t, os.WriteFile(file, content, 0o600))
	sum := sha256.Sum256(content)
	l.cfg.Images[debian] = ImageConfig{File: file, SHA256: hex.EncodeToString(sum[:]), Format: format}
}

// fetched gives every host the image of the configuration, as a fetch leaves it.
func (l *lab) fetched() {
	volume := l.cfg.Images[debian].entry(debian).Volume()
	for _, h := range l.hosts {
		h.putImage(volume, 2<<30)
	}
}

// forget takes the image of the configuration off every host.
func (l *lab) forget() {
	volume := l.cfg.Images[debian].entry(debian).Volume()
	for _, h := range l.hosts {
		h.mu.Lock()
		delete(h.volumes, volume)
		delete(h.volumes, volume+".complete")
		h.mu.Unlock()
	}
}

func qcow2(size uint64) []byte {
	content := make([]byte, 1<<20)
	copy(content, qcow2Magic)
	binary.BigEndian.PutUint64(content[qcow2SizeAt:], size)
	return content
}

func TestACreateWithoutItsImageMakesNothingAndPrepareBringsIt(t *testing.T) {
	t.Parallel()
	l := spread()
	l.withImage(t, qcow2(3<<30), formatQCOW2)
	p, req := l.open(t), inGroup("prepared")
	t.Cleanup(func() { require.NoError(t, p.Close()) })
	_, err := p.Create(t.Context(), req)
	require.ErrorIs(t, err, providers.ErrTransient)
	var missing *providers.NotPreparedError
	require.ErrorAs(t, err, &missing)
	require.Contains(t, missing.What, "image debian on host ")
	require.Empty(t, l.left(req.UID))

	asked := req
	asked.CloudInit, asked.Labels, asked.SpecMark = nil, nil, ""
	reported := false
	ctx := providers.WithProgress(t.Context(), func(_, _ int64, _ string) { reported = true })
	require.NoError(t, p.Prepare(ctx, asked))
	require.True(t, reported)
	require.Empty(t, l.left(req.UID), "it makes no instance")
	id, err := p.Create(t.Context(), req)
	require.NoError(t, err, "on the host that was prepared")
	h, _ := l.at(t, id)
	require.Equal(t, uint64(10<<30), h.volumes[overlayName(req.Name)].xml.Capacity.Value)
	require.NoError(t, p.Prepare(t.Context(), asked), "again, which does nothing")
}

// The disk of a guest is as large as that in the image, not as the file.
func TestADiskIsNeverSmallerThanTheOneInTheImage(t *testing.T) {
	t.Parallel()
	for format, want := range map[string]uint64{formatQCOW2: 3 << 30, formatRaw: 1 << 20} {
		l := newLab("a")
		l.withImage(t, qcow2(3<<30), format)
		l.cfg.MachineTypes[smallMachine] = MachineTypeConfig{Memory: "512Mi"}
		p, req := l.open(t), request("sized")
		require.NoError(t, p.Prepare(t.Context(), req))
		_, err := p.Create(t.Context(), req)
		require.NoError(t, err)
		require.Equal(t, want, l.hosts["a"].volumes[overlayName(req.Name)].xml.Capacity.Value, format)
		require.NoError(t, p.Close())
	}
}

func TestAFileOfAnotherFormatIsRefused(t *testing.T) {
	t.Parallel()
	l := newLab("a")
	l.withImage(t, bytes.Repeat([]byte("x"), 4096), formatQCOW2)
	p, req := l.open(t), request("raw")
	t.Cleanup(func() { require.NoError(t, p.Close()) })
	require.NoError(t, p.Prepare(t.Context(), req))
	_, err := p.Create(t.Context(), req)
	require.ErrorIs(t, err, providers.ErrPermanent)
	require.ErrorContains(t, err, "images.debian.format")
	require.Empty(t, l.left(req.UID))
}

func TestErrorsOfPrepareHaveTheClassesOfACreate(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		change func(*lab, *providers.CreateRequest)
		class  providers.Class
	}{
		"an unknown image": {func(_ *lab, r *providers.CreateRequest) { r.Placement.Image = "x" }, providers.ErrPermanent},
		"another digest": {func(l *lab, _ *providers.CreateRequest) {
			i := l.cfg.Images[debian]
			i.SHA256 = digits
			l.cfg.Images[debian] = i
		}, providers.ErrPermanent},
		"a file that is missing": {func(l *lab, _ *providers.CreateRequest) {
			require.NoError(t, os.Remove(l.cfg.Images[debian].File))
		}, providers.ErrPermanent},
		"a host that is down": {func(l *lab, _ *providers.CreateRequest) {
			l.hosts["a"].fail(conn.StageDial, conn.Unreachable)
		}, providers.ErrTransient},
		"a full host": {func(l *lab, _ *providers.CreateRequest) { l.hosts["a"].exhaust() }, providers.ErrQuotaExceeded},
	} {
		l := newLab("a")
		l.hosts["a"].memory = newMemory() // without any image
		l.withImage(t, qcow2(1<<30), formatQCOW2)
		req := request("failing")
		c.change(l, &req)
		p := l.open(t)
		err := p.Prepare(t.Context(), req)
		require.ErrorIs(t, err, c.class, "%s: %v", name, err)
		var failed *providers.Error
		require.ErrorAs(t, err, &failed)
		require.Equal(t, providers.OpPrepare, failed.Op)
		require.NoError(t, p.Close())
	}
}
