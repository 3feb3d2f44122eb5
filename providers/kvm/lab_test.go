package kvm

import (
	"bytes"
	"context"
	"encoding/binary"
	"io"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/digitalocean/go-libvirt"
	"github.com/kdomanski/iso9660"
	"github.com/stretchr/testify/require"
	"libvirt.org/go/libvirtxml"

	"github.com/egressfleet/egressfleet/providers"
	"github.com/egressfleet/egressfleet/providers/kvm/conn"
)

const (
	providerName = "hypervisors"
	installation = "test"
	smallMachine = "small"
	debian       = "debian"
	digits       = "00112233445566778899aabbccddeeff00112233445566778899aabbccddeeff"
)

// lab is two or more hosts in memory, and what a test does to the way there.
type lab struct {
	hosts map[string]*fakeLink
	cfg   Config
}

// fakeLink is the way to a host in memory. It behaves as the real one: a call whose caller
// has left goes on.
type fakeLink struct {
	name string
	*memory

	way     sync.Mutex
	see     func(context.Context)
	failure func() error  // the answer of the link
	stalled chan struct{} // closed when calls go on
}

func (l *fakeLink) Do(ctx context.Context, use func(api) error) error {
	l.way.Lock()
	see, failure, stalled := l.see, l.failure, l.stalled
	l.way.Unlock()
	if see != nil {
		see(ctx)
	}
	if failure != nil {
		if err := failure(); err != nil {
			return err
		}
	}
	ended := make(chan error, 1)
	go func() {
		if stalled != nil {
			<-stalled
		}
		ended <- use(l.memory)
	}()
	select {
	case err := <-ended:
		return err
	case <-ctx.Done():
		return &conn.Error{Host: l.name, Stage: conn.StageRPC, Reason: conn.Canceled, Err: context.Cause(ctx)}
	}
}

func (l *fakeLink) Probe(ctx context.Context, use func(api) error) error { return l.Do(ctx, use) }
func (l *fakeLink) Close() error                                         { return nil }

// fail lets the link answer with a reason until it is healed.
func (l *fakeLink) fail(stage conn.Stage, reason conn.Reason) (heal func()) {
	l.way.Lock()
	defer l.way.Unlock()
	l.failure = func() error {
		return &conn.Error{Host: l.name, Stage: stage, Reason: reason, Err: io.ErrUnexpectedEOF}
	}
	return func() {
		l.way.Lock()
		defer l.way.Unlock()
		l.failure = nil
	}
}

func (l *fakeLink) stall() (release func()) {
	stalled := make(chan struct{})
	l.way.Lock()
	l.stalled = stalled
	l.way.Unlock()
	return sync.OnceFunc(func() {
		l.way.Lock()
		l.stalled = nil
		l.way.Unlock()
		close(stalled)
	})
}

// newLab returns a lab with these hosts, each of which has the image.
func newLab(names ...string) *lab {
	l := &lab{hosts: map[string]*fakeLink{}, cfg: Config{
		Images:       map[string]ImageConfig{debian: {URL: "https://images.example.com/debian.qcow2", SHA256: digits}},
		MachineTypes: map[string]MachineTypeConfig{smallMachine: {Memory: "512Mi", Disk: "10Gi"}},
	}}
	for _, name := range names {
		l.cfg.Hosts = append(l.cfg.Hosts, HostConfig{
			Name: name, Address: name + ".example.com", User: "fleet", KeyFile: "key", KnownHostsFile: "known_hosts",
		})
		m := newMemory()
		m.putImage(baseImage.Volume(), 2<<30)
		l.hosts[name] = &fakeLink{name: name, memory: m}
	}
	return l
}

// baseImage is the image that every host of a lab has.
var baseImage = ImageConfig{SHA256: digits, Format: formatQCOW2}.entry(debian)

// putImage stores the image as a fetch leaves it.
func (m *memory) putImage(volume string, size uint64) {
	m.put(volume+".complete", 0)
	header := append([]byte(qcow2Magic), make([]byte, qcow2Header-len(qcow2Magic))...)
	binary.BigEndian.PutUint64(header[qcow2SizeAt:], size)
	m.put(volume, 1).data = header
}

// put makes a volume that nobody asked for.
func (m *memory) put(name string, size uint64) *fakeVolume {
	m.mu.Lock()
	defer m.mu.Unlock()
	v := &fakeVolume{xml: libvirtxml.StorageVolume{
		Name: name, Capacity: &libvirtxml.StorageVolumeSize{Value: size},
		Allocation: &libvirtxml.StorageVolumeSize{Value: size},
		Target:     &libvirtxml.StorageVolumeTarget{Path: poolPath + name},
	}}
	m.stamp(v, m.today())
	m.volumes[name] = v
	return v
}

func (l *lab) open(t *testing.T) *Provider { return l.openFor(t, installation) }

func (l *lab) openFor(t *testing.T, installation string) *Provider {
	t.Helper()
	p, err := newProvider(providerName, installation, l.cfg, func(cfg HostConfig) link { return l.hosts[cfg.Name] })
	require.NoError(t, err)
	return p
}

// at returns the host and the domain of an ID.
func (l *lab) at(t *testing.T, id string) (*fakeLink, *fakeDomain) {
	t.Helper()
	host, name, err := parseID(id)
	require.NoError(t, err)
	h := l.hosts[host]
	h.mu.Lock()
	defer h.mu.Unlock()
	require.NotNil(t, h.domains[name], "domain of %s", id)
	return h, h.domains[name]
}

// set changes a domain, as somebody on the host does.
func (l *lab) set(t *testing.T, id string, change func(*fakeDomain)) {
	t.Helper()
	h, d := l.at(t, id)
	h.mu.Lock()
	defer h.mu.Unlock()
	change(d)
}

func (l *lab) each(do func(*fakeLink) func()) (undo func()) {
	var all []func()
	for _, h := range l.hosts {
		all = append(all, do(h))
	}
	return func() {
		for _, undo := range all {
			undo()
		}
	}
}

// answering lets every call of the hosts be answered by before, until it is undone.
func (l *lab) answering(before func(rpc, subject string) error) (undo func()) {
	return l.each(func(h *fakeLink) func() { return h.answering(before) })
}

func (m *memory) answering(before func(rpc, subject string) error) (undo func()) {
	set := func(f func(rpc, subject string) error) {
		m.mu.Lock()
		defer m.mu.Unlock()
		m.before = f
	}
	set(before)
	return func() { set(nil) }
}

// squat defines a domain under the name of a request, with marks that change may spoil.
func (m *memory) squat(t *testing.T, req providers.CreateRequest, change func(*marks)) {
	t.Helper()
	has, err := newMarks(req, defaultPool, m.today())
	require.NoError(t, err)
	has.Phase = phaseStarted
	change(&has)
	text, err := guest{
		name: req.Name, domainType: domainQEMU, machine: machine{1, 512 * mib, 0}, overlay: poolPath + overlayName(req.Name),
		seed: poolPath + seedName(req.Name), network: defaultNetwork, marks: has,
	}.domainXML()
	require.NoError(t, err)
	dom, err := m.DomainDefineXMLFlags(text, 0)
	require.NoError(t, err)
	t.Cleanup(func() {
		m.mu.Lock()
		defer m.mu.Unlock()
		if d := m.domains[dom.Name]; d != nil && d.UUID == dom.UUID {
			delete(m.domains, dom.Name)
		}
	})
}

// orphan makes the volumes that a create makes first, an hour ago.
func (m *memory) orphan(t *testing.T, req providers.CreateRequest) {
	t.Helper()
	name, err := holding{req.Name, req.UID, req.Installation, req.Owner}.volume()
	require.NoError(t, err)
	for _, each := range []string{name, overlayName(req.Name)} {
		m.stamp(m.put(each, 3<<20), m.today().Add(-time.Hour))
	}
}

// age lets time pass for the volumes.
func (m *memory) age(by time.Duration) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, v := range m.volumes {
		m.stamp(v, m.today().Add(-by))
	}
}

// left names all that a host has of a UID.
func (l *lab) left(uid string) (all []string) {
	name := providers.NameFromUID(uid)
	for _, h := range l.hosts {
		h.mu.Lock()
		for domain := range h.domains {
			if domain == name {
				all = append(all, "domain "+domain)
			}
		}
		for volume := range h.volumes {
			if strings.HasPrefix(volume, name) {
				all = append(all, "volume "+volume)
			}
		}
		h.mu.Unlock()
	}
	return all
}

// delivered reads the user-data out of the seed, as a guest would.
func (l *lab) delivered(t *testing.T, id string) []byte {
	t.Helper()
	h, d := l.at(t, id)
	h.mu.Lock()
	image := bytes.Clone(h.volumes[seedName(d.Name)].data)
	h.mu.Unlock()
	iso, err := iso9660.OpenImage(bytes.NewReader(image))
	require.NoError(t, err)
	root, err := iso.RootDir()
	require.NoError(t, err)
	files, err := root.GetChildren()
	require.NoError(t, err)
	for _, f := range files {
		if strings.EqualFold(strings.TrimSuffix(f.Name(), "."), "user-data") {
			data, err := io.ReadAll(f.Reader())
			require.NoError(t, err)
			return data
		}
	}
	require.Fail(t, "the seed has no user-data")
	return nil
}

func request(uid string) providers.CreateRequest {
	return providers.CreateRequest{
		Name: providers.NameFromUID(uid), UID: uid, Attempt: 1, Installation: installation, Owner: "default/" + uid,
		SpecMark: `{"port":3128}`, Port: 3128, CloudInit: []byte("#cloud-config\n"),
		Placement: providers.Placement{MachineType: smallMachine, Image: debian},
	}
}

func stateOf(state libvirt.DomainState, reason int32) func(*fakeDomain) {
	return func(d *fakeDomain) { d.state, d.reason = int32(state), reason }
}
