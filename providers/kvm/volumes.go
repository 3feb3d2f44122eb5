package kvm

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"hash"
	"io"

	"github.com/digitalocean/go-libvirt"

	"github.com/egressfleet/egressfleet/providers/kvm/seed"
)

func (m *making) volume(name string) (libvirt.StorageVol, error) {
	return m.calls.StorageVolLookupByName(m.pool, name)
}

// mark makes the volume whose name says whose the others are.
func (m *making) mark() error {
	name, err := holding{m.order.Name, m.order.UID, m.order.Installation, m.order.Owner}.volume()
	if err != nil {
		return err
	}
	if _, err := m.volume(name); !noVolume(err) {
		return err
	}
	text, err := volumeXML(name, formatRaw, 0)
	if err != nil {
		return err
	}
	_, err = m.make(name, text)
	return err
}

// make makes a volume. One that is there although the pool did not know of it is found by
// reading its folder again; whoever made it, it is used as one that was found.
func (m *making) make(name, text string) (libvirt.StorageVol, error) {
	vol, err := m.calls.StorageVolCreateXML(m.pool, text, 0)
	if !volumeExists(err) {
		return vol, err
	}
	if found, lookErr := m.volume(name); lookErr == nil {
		return found, transient("volume %s: %w: %w", name, errOvertaken, err)
	}
	if refreshErr := m.calls.StoragePoolRefresh(m.pool, 0); refreshErr != nil {
		return vol, refreshErr
	}
	return vol, transient("volume %s was there unknown to its pool, which has been read again: %w", name, err)
}

// freshOverlay is what an overlay takes that nothing was written to, at most, in bytes.
const freshOverlay = 1 << 20

// overlay makes the disk and returns its path. There is no domain, so one that is there is
// what a crash left: it is used again only if it is as it was made. A guest that finds the disk
// of an earlier one keeps its old configuration.
func (m *making) overlay(on base) (string, error) {
	name, size := overlayName(m.order.Name), max(m.order.machine.disk, on.size)
	vol, err := m.volume(name)
	if err == nil {
		text, err := m.calls.StorageVolGetXMLDesc(vol, 0)
		if err != nil {
			return "", err
		}
		has, capacity, allocation, err := volumeOn(text)
		if err != nil {
			return "", err
		}
		if has == on.backing && capacity == size && allocation <= freshOverlay {
			return m.calls.StorageVolGetPath(vol)
		}
		err = m.discard(vol)
		if err != nil {
			return "", err
		}
	} else if !noVolume(err) {
		return "", err
	}
	text, err := overlayXML(name, size, on.backing)
	if err != nil {
		return "", err
	}
	if vol, err = m.make(name, text); err != nil {
		return "", err
	}
	return m.calls.StorageVolGetPath(vol)
}

// discard removes a volume that is of no use, unless a domain has come to use it meanwhile:
// libvirt would not mind.
func (m *making) discard(vol libvirt.StorageVol) error {
	dom, err := m.calls.DomainLookupByName(m.order.Name)
	if err == nil {
		state, _, err := m.calls.DomainGetState(dom, 0)
		if err != nil {
			return err
		}
		if state != int32(libvirt.DomainShutoff) {
			return transient("the domain was started: %w", errOvertaken)
		}
	} else if !noDomain(err) {
		return err
	}
	if err := m.calls.StorageVolDelete(vol, 0); err != nil && !noVolume(err) {
		return err
	}
	return nil
}

// seed writes the seed and returns its path. One that is there may be half written: it is
// made anew.
func (m *making) seed() (string, error) {
	image, err := m.iso()
	if err != nil {
		return "", err
	}
	name := seedName(m.order.Name)
	vol, err := m.volume(name)
	if err == nil {
		err = m.discard(vol)
	}
	if err != nil && !noVolume(err) {
		return "", err
	}
	text, err := volumeXML(name, formatRaw, uint64(len(image)))
	if err != nil {
		return "", err
	}
	if vol, err = m.make(name, text); err != nil {
		return "", err
	}
	if err := m.upload(vol, image); err != nil {
		return "", err
	}
	return m.calls.StorageVolGetPath(vol)
}

func (m *making) iso() ([]byte, error) {
	sum := sha256.Sum256(m.order.CloudInit)
	return seed.Seed{
		InstanceID: seed.InstanceID(m.order.UID, m.order.Attempt, hex.EncodeToString(sum[:])),
		Hostname:   m.order.Name, UserData: m.order.CloudInit, VendorData: seed.AgentVendorData(),
	}.ISO()
}

// upload writes a volume and reads it back: libvirt's client may report success on a full
// disk, and takes a reader that ends early for the end.
func (m *making) upload(vol libvirt.StorageVol, data []byte) error {
	size := uint64(len(data))
	if err := m.calls.StorageVolUpload(vol, &small{bytes.NewReader(data)}, 0, size, 0); err != nil {
		return err
	}
	want, got := sha256.Sum256(data), &digest{Hash: sha256.New()}
	if err := m.calls.StorageVolDownload(vol, got, 0, size, 0); err != nil {
		return err
	}
	if got.bytes == size && bytes.Equal(want[:], got.Sum(nil)) {
		return nil
	}
	if r, err := measure(m.calls, m.host.Pool); err == nil && r.pool < size {
		return quota("the pool of host %s is full: volume %s was not stored whole", m.host.Name, vol.Name)
	}
	return transient("volume %s was not stored whole: %d of %d bytes were read back", vol.Name, got.bytes, size)
}

// digest is a hash that counts.
type digest struct {
	hash.Hash
	bytes uint64
}

func (d *digest) Write(data []byte) (int, error) {
	d.bytes += uint64(len(data))
	return d.Hash.Write(data)
}

// small is a reader of small pieces: larger ones hide an error of the other side from
// libvirt's client.
type small struct{ io.Reader }

func (s *small) Read(into []byte) (int, error) {
	const piece = 256 << 10
	return s.Reader.Read(into[:min(len(into), piece)])
}
