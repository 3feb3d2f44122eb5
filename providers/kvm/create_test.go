package kvm

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/digitalocean/go-libvirt"
	"github.com/stretchr/testify/require"

	"github.com/egressfleet/egressfleet/providers"
	"github.com/egressfleet/egressfleet/providers/kvm/conn"
)

// cutOff breaks the connection at the n-th call from now on, and at every later one.
func (l *lab) cutOff(n int) (undo func(), calls *int) {
	count := 0
	return l.answering(func(string, string) error {
		if count++; count > n {
			return &conn.Error{Host: "a", Stage: conn.StageRPC, Reason: conn.ConnectionLost, Err: libvirt.ErrInterrupted}
		}
		return nil
	}), &count
}

// A worker dies, or its connection does, between any two calls: the next create goes on.
func TestACreateThatIsCutOffAnywhereIsTakenUp(t *testing.T) {
	t.Parallel()
	for n, ended := 0, false; !ended; n++ {
		l := newLab("a")
		p := l.open(t)
		req := request(fmt.Sprintf("cut-%d", n))
		undo, _ := l.cutOff(n)
		_, err := p.Create(t.Context(), req)
		undo()
		if ended = err == nil; !ended {
			require.ErrorIs(t, err, providers.ErrTransient, "after %d calls", n)
		}
		id, err := p.Create(t.Context(), req)
		require.NoError(t, err, "after %d calls", n)
		found, err := p.Get(t.Context(), id)
		require.NoError(t, err)
		require.Equal(t, providers.StateRunning, found.State, "after %d calls", n)
		require.Len(t, l.left(req.UID), 4, "marks, disk, seed, domain")
		require.Equal(t, "#cloud-config\n", string(l.delivered(t, id)))
		require.NoError(t, p.Delete(t.Context(), id))
		require.Empty(t, l.left(req.UID), "after %d calls", n)
	}
}

// What such a worker leaves is an instance or a leftover, and goes by the ID that it is listed with.
func TestWhatACutOffCreateLeavesIsListedAndTaken(t *testing.T) {
	t.Parallel()
	for n, ended := 0, false; !ended; n++ {
		l := newLab("a")
		p := l.open(t)
		req := request(fmt.Sprintf("cut-%d", n))
		undo, _ := l.cutOff(n)
		_, err := p.Create(t.Context(), req)
		undo()
		ended = err == nil
		l.hosts["a"].age(time.Hour)
		inventory, err := p.Inventory(t.Context())
		require.NoError(t, err)
		require.Equal(t, len(l.left(req.UID)) > 0, len(inventory.Instances)+len(inventory.Leftovers) > 0, "after %d calls", n)
		for _, i := range inventory.Instances {
			require.Equal(t, req.UID, i.UID)
			require.NoError(t, p.Delete(t.Context(), i.ID))
		}
		for _, left := range inventory.Leftovers {
			require.Equal(t, providers.Leftover{
				ID: formatID("a", req.Name), Kind: "volume", UID: req.UID, Installation: installation, Owner: req.Owner,
				CreatedAt: left.CreatedAt,
			}, left)
			require.False(t, left.CreatedAt.IsZero())
			require.NoError(t, p.Delete(t.Context(), left.ID))
		}
		require.Empty(t, l.left(req.UID), "after %d calls", n)
	}
}

// A delete that is cut off anywhere leaves what the next one, or orphan collection, takes.
func TestADeleteThatIsCutOffAnywhereIsTakenUp(t *testing.T) {
	t.Parallel()
	for n, ended := 0, false; !ended; n++ {
		l := newLab("a")
		p := l.open(t)
		req := request(fmt.Sprintf("cut-%d", n))
		id, err := p.Create(t.Context(), req)
		require.NoError(t, err)
		undo, _ := l.cutOff(n)
		err = p.Delete(t.Context(), id)
		undo()
		if ended = err == nil; !ended {
			require.ErrorIs(t, err, providers.ErrTransient)
		}
		l.hosts["a"].age(time.Hour)
		inventory, err := p.Inventory(t.Context())
		require.NoError(t, err)
		require.Equal(t, len(l.left(req.UID)) > 0, len(inventory.Instances)+len(inventory.Leftovers) > 0, "after %d calls", n)
		require.NoError(t, p.Delete(t.Context(), id))
		require.Empty(t, l.left(req.UID), "after %d calls", n)
	}
}

// Nothing may be repeated that cannot succeed, and nothing of it may stay.
func TestACreateWithoutRoomLeavesNothing(t *testing.T) {
	t.Parallel()
	fails := func(rpc string, err error) func(*fakeLink) {
		return func(h *fakeLink) {
			h.answering(func(called, subject string) error {
				if called == rpc && !strings.HasSuffix(subject, marksSuffix) {
					return err
				}
				return nil
			})
		}
	}
	full := says(libvirt.ErrSystemError, "cannot allocate 1 bytes in file '/x': No space left on device")
	for name, c := range map[string]struct {
		spoil func(*fakeLink)
		class providers.Class
		says  string
		made  bool // something was made first
	}{
		"no memory": {
			func(h *fakeLink) { h.memoryFree = 700 * mib }, providers.ErrQuotaExceeded, "700 MiB of memory", false,
		},
		"a full pool":   {func(h *fakeLink) { h.poolFree = 100 * mib }, providers.ErrQuotaExceeded, "100 MiB free", false},
		"a full disk":   {fails("StorageVolCreateXML", full), providers.ErrQuotaExceeded, "No space left", true},
		"a full stream": {fails("StorageVolUpload", full), providers.ErrQuotaExceeded, "No space left", true},
		"none for QEMU": {
			fails("DomainCreate", says(libvirt.ErrInternalError, "qemu: Cannot allocate memory")),
			providers.ErrQuotaExceeded, "Cannot allocate", true,
		},
		"no bridge": {
			fails("DomainCreate", says(libvirt.ErrSystemError, "Cannot get interface MTU on 'br': No such device")),
			providers.ErrPermanent, "No such device", true,
		},
		"no such domain": {
			fails("DomainDefineXMLFlags", says(libvirt.ErrConfigUnsupported, "unsupported configuration")),
			providers.ErrPermanent, "unsupported", true,
		},
	} {
		l := newLab("a")
		c.spoil(l.hosts["a"])
		req := request("without-room")
		_, err := l.open(t).Create(t.Context(), req)
		require.ErrorIs(t, err, c.class, name)
		require.ErrorContains(t, err, c.says, name)
		require.Empty(t, l.left(req.UID), name)
		made := len(l.hosts["a"].calls("StorageVolCreateXML")) > 0
		require.Equal(t, c.made, made, "%s: refused before anything is made", name)
	}
}

func TestWhatWasNotStoredWholeIsNotUsed(t *testing.T) {
	t.Parallel()
	l := newLab("a")
	h, p, req := l.hosts["a"], l.open(t), request("short")
	cut := h.answering(func(rpc, _ string) error {
		if rpc == rpcUpload {
			h.mu.Lock()
			h.poolFree = 1000 // the disk fills up, and libvirt says nothing
			h.mu.Unlock()
		}
		return nil
	})
	_, err := p.Create(t.Context(), req)
	cut()
	require.ErrorIs(t, err, providers.ErrQuotaExceeded)
	require.ErrorContains(t, err, "not stored whole")
	require.Empty(t, l.left(req.UID))
}

// An earlier guest's disk would bring its old configuration back; another image's would be
// another system.
func TestADiskThatIsThereIsUsedOnlyIfItIsFresh(t *testing.T) {
	t.Parallel()
	on := backing{poolPath + baseImage.Volume(), formatQCOW2}
	for name, c := range map[string]struct {
		on        backing
		size      uint64
		allocated uint64
		kept      bool
	}{
		"as it was made":  {on, 10 << 30, 196 << 10, true},
		"written to":      {on, 10 << 30, 5 << 20, false},
		"another size":    {on, 20 << 30, 196 << 10, false},
		"another image":   {backing{poolPath + "other", formatQCOW2}, 10 << 30, 196 << 10, false},
		"another format":  {backing{on.path, formatRaw}, 10 << 30, 196 << 10, false},
		"without a image": {backing{}, 10 << 30, 196 << 10, false},
	} {
		l := newLab("a")
		h, req := l.hosts["a"], request("reused")
		text, err := overlayXML(overlayName(req.Name), c.size, c.on)
		require.NoError(t, err)
		h.put("other", 1)
		v := h.put(overlayName(req.Name), c.size)
		require.NoError(t, v.xml.Unmarshal(text))
		v.xml.Allocation.Value, v.xml.Target.Path = c.allocated, poolPath+overlayName(req.Name)
		_, err = l.open(t).Create(t.Context(), req)
		require.NoError(t, err, name)
		require.Equal(t, c.kept, h.volumes[overlayName(req.Name)] == v, name)
	}
}

func TestAPoolThatDoesNotKnowAFileIsReadAgain(t *testing.T) {
	t.Parallel()
	l := newLab("a")
	h, p, req := l.hosts["a"], l.open(t), request("stale")
	stale := true
	undo := h.answering(func(rpc, subject string) error {
		switch {
		case rpc == "StoragePoolRefresh":
			stale = false
		case stale && rpc == "StorageVolCreateXML" && subject == overlayName(req.Name):
			return says(libvirt.ErrOperationInvalid, "Requested operation is not valid: volume target path '/x' already exists")
		}
		return nil
	})
	defer undo()
	_, err := p.Create(t.Context(), req)
	require.ErrorIs(t, err, providers.ErrTransient)
	_, err = p.Create(t.Context(), req)
	require.NoError(t, err)
}

func TestADiskSmallerThanItsImageIsRefused(t *testing.T) {
	t.Parallel()
	l := newLab("a")
	l.cfg.MachineTypes[smallMachine] = MachineTypeConfig{Memory: "512Mi", Disk: "1Gi"}
	req := request("small")
	_, err := l.open(t).Create(t.Context(), req)
	require.ErrorIs(t, err, providers.ErrPermanent)
	require.ErrorContains(t, err, "machineTypes.small.disk: 1024 MiB are less than the 2048 MiB")
	require.Empty(t, l.left(req.UID))
}

// Another worker defined the name between the look and the define.
func TestOnlyOneDefineOfANameWins(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		uid   string
		class providers.Class
	}{"of this proxy": {"raced", ""}, "of another one": {"other", providers.ErrPermanent}} {
		l := newLab("a")
		h, p, req := l.hosts["a"], l.open(t), request("raced")
		var undo func()
		undo = h.answering(func(rpc, _ string) error {
			if rpc == "DomainDefineXMLFlags" {
				undo()
				first := req
				first.UID = c.uid
				h.squat(t, first, func(has *marks) { has.Phase = phaseStarting })
			}
			return nil
		})
		id, err := p.Create(t.Context(), req)
		require.Equal(t, c.class, providers.ClassOf(err), "%s: %v", name, err)
		if c.class == "" {
			found, err := p.Get(t.Context(), id)
			require.NoError(t, err)
			require.Equal(t, providers.StateRunning, found.State)
		}
	}
}

func TestWhatCanNeverBeMadeIsRefusedBeforeAnyHostIsAsked(t *testing.T) {
	t.Parallel()
	for says, change := range map[string]func(*providers.CreateRequest){
		`placement.zone: "x" is none of a, b, z`: func(r *providers.CreateRequest) { r.Placement.Zone = "x" },
		`placement.region: "x" is none of r`:     func(r *providers.CreateRequest) { r.Placement.Region = "x" },
		`no host is both in zone "b" and in region "r"`: func(r *providers.CreateRequest) {
			r.Placement.Zone, r.Placement.Region = "b", "r"
		},
		`placement.machineType: "x" is none of small`: func(r *providers.CreateRequest) {
			r.Placement.MachineType = "x"
		},
		`placement.image: "" is none of debian`: func(r *providers.CreateRequest) { r.Placement.Image = "" },
		`cloudInit: 4194305 bytes are more than the 4194304`: func(r *providers.CreateRequest) {
			r.CloudInit = make([]byte, maxCloudInit+1)
		},
		`spec.port: 0 is not between 1 and 65535`: func(r *providers.CreateRequest) { r.Port = 0 },
		`labels: "proxy-operator-uid" is kept for the marks`: func(r *providers.CreateRequest) {
			r.Labels = map[string]string{providers.MarkUID: "x"}
		},
		`uid: "" must be set`:          func(r *providers.CreateRequest) { r.UID = "" },
		`name: "X" is not a DNS label`: func(r *providers.CreateRequest) { r.Name = "X" },
	} {
		l := newLab("a", "b")
		l.cfg.Hosts[0].Region, l.cfg.Hosts[0].Zone = "r", "z"
		req := request("never")
		change(&req)
		_, err := l.open(t).Create(t.Context(), req)
		require.ErrorIs(t, err, providers.ErrPermanent, says)
		require.ErrorContains(t, err, says)
		require.Empty(t, l.hosts["a"].called, says)
	}
}

// What was defined long ago and is started now reads as being started, not as stopped.
func TestACreateThatComesBackLateBeginsItsStartAnew(t *testing.T) {
	t.Parallel()
	l := newLab("a")
	h, p, req := l.hosts["a"], l.open(t), request("late")
	id := formatID("a", req.Name)
	h.squat(t, req, func(has *marks) {
		has.Phase = phaseStarting
		has.CreatedAt = time.Now().Add(-time.Hour).Format(time.RFC3339Nano)
		has.StartingAt = has.CreatedAt
	})
	stateNow := func() providers.State {
		found, err := p.Get(t.Context(), id)
		require.NoError(t, err)
		return found.State
	}
	require.Equal(t, providers.StateStopped, stateNow(), "nobody came back")
	undo := h.answering(func(rpc, _ string) error {
		if rpc == rpcStart {
			return says(libvirt.ErrInternalError, "internal error: try again")
		}
		return nil
	})
	_, err := p.Create(t.Context(), req)
	require.ErrorIs(t, err, providers.ErrTransient)
	require.Equal(t, providers.StateProvisioning, stateNow())
	undo()
	again, err := p.Create(t.Context(), req)
	require.NoError(t, err)
	require.Equal(t, id, again)
	require.Equal(t, providers.StateRunning, stateNow())
}

// While libvirt starts a domain it calls it paused, and its disk is in use.
func TestACreateTakesUpADomainThatIsBeingStarted(t *testing.T) {
	t.Parallel()
	l := newLab("a")
	p := l.open(t)
	id, err := p.Create(t.Context(), request("u"))
	require.NoError(t, err)
	host, d := l.at(t, id)
	again := request("u")
	has, err := newMarks(again, defaultPool, time.Now())
	require.NoError(t, err)
	text, err := has.element()
	require.NoError(t, err)
	l.set(t, id, func(d *fakeDomain) {
		d.xml.Metadata.XML = text
		d.state, d.reason = int32(libvirt.DomainPaused), int32(libvirt.DomainPausedStartingUp)
	})
	host.volumes[overlayName(d.Name)].xml.Allocation.Value = 5 << 20 // the guest has written already
	before := d.UUID
	same, err := p.Create(t.Context(), again)
	require.NoError(t, err)
	require.Equal(t, id, same)
	_, d = l.at(t, id)
	require.Equal(t, before, d.UUID)
	found, err := p.Get(t.Context(), id)
	require.NoError(t, err)
	require.Equal(t, providers.StateRunning, found.State)
}
