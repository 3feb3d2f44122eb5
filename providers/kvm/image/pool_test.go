package image_test

import (
	"bytes"
	"context"
	"io"
	"slices"
	"sync"
	"testing"

	"github.com/digitalocean/go-libvirt"
	"github.com/stretchr/testify/require"
	"libvirt.org/go/libvirtxml"

	"github.com/egressfleet/egressfleet/providers/kvm/image"
)

// pool is a host's folder of volumes, which answers as libvirt does.
type pool struct {
	mu     sync.Mutex
	files  map[string][]byte
	hidden map[string]bool // on the disk, and not known to libvirt
	free   int
	// What goes wrong.
	lies      bool                     // a full disk is reported as success
	corrupts  bool                     // what is stored is not what was sent
	uploading func(name string)        // at the first byte of each upload
	tooLong   bool                     // a reader went on after its length
	stuck     chan struct{}            // an upload that never returns, until it is closed
	refuses   map[string]libvirt.Error // by method
}

func newPool() *pool {
	return &pool{files: map[string][]byte{}, hidden: map[string]bool{}, free: 1 << 30, refuses: map[string]libvirt.Error{}}
}

var _ image.API = (*pool)(nil)

func gone(name string) error {
	return libvirt.Error{Code: 50, Message: "Storage volume not found: no storage vol with matching name '" + name + "'"}
}

func (p *pool) lock(method string) (unlock func(), err error) {
	p.mu.Lock()
	if refused, ok := p.refuses[method]; ok {
		err = refused
	}
	return p.mu.Unlock, err
}

func (p *pool) known(name string) ([]byte, bool) {
	content, ok := p.files[name]
	return content, ok && !p.hidden[name]
}

func (p *pool) StoragePoolGetInfo(libvirt.StoragePool) (uint8, uint64, uint64, uint64, error) {
	unlock, err := p.lock("info")
	defer unlock()
	return 2, 1 << 40, 0, uint64(p.free), err
}

func (p *pool) StoragePoolListAllVolumes(libvirt.StoragePool, int32, uint32) ([]libvirt.StorageVol, uint32, error) {
	unlock, err := p.lock("list")
	defer unlock()
	var volumes []libvirt.StorageVol
	for name := range p.files {
		if !p.hidden[name] {
			volumes = append(volumes, libvirt.StorageVol{Name: name, Key: "/pool/" + name})
		}
	}
	return volumes, uint32(len(volumes)), err
}

func (p *pool) StoragePoolRefresh(libvirt.StoragePool, uint32) error {
	unlock, err := p.lock("refresh")
	defer unlock()
	clear(p.hidden)
	return err
}

func (p *pool) StorageVolLookupByName(_ libvirt.StoragePool, name string) (libvirt.StorageVol, error) {
	unlock, err := p.lock("lookup")
	defer unlock()
	if _, ok := p.known(name); !ok && err == nil {
		err = gone(name)
	}
	return libvirt.StorageVol{Pool: "pool", Name: name, Key: "/pool/" + name}, err
}

func (p *pool) StorageVolCreateXML(_ libvirt.StoragePool, xml string, _ libvirt.StorageVolCreateFlags) (
	libvirt.StorageVol, error,
) {
	unlock, err := p.lock("create")
	defer unlock()
	var volume libvirtxml.StorageVolume
	if broken := volume.Unmarshal(xml); broken != nil {
		return libvirt.StorageVol{}, broken
	}
	_, there := p.files[volume.Name]
	switch {
	case err != nil:
		return libvirt.StorageVol{}, err
	case p.hidden[volume.Name]:
		return libvirt.StorageVol{}, libvirt.Error{
			Code: 55, Message: "Requested operation is not valid: volume target path '" + volume.Name + "' already exists",
		}
	case there:
		return libvirt.StorageVol{}, libvirt.Error{Code: 90, Message: "storage volume '" + volume.Name + "' exists already"}
	}
	p.files[volume.Name] = nil
	return libvirt.StorageVol{Pool: "pool", Name: volume.Name, Key: "/pool/" + volume.Name}, nil
}

func (p *pool) StorageVolDelete(volume libvirt.StorageVol, _ libvirt.StorageVolDeleteFlags) error {
	unlock, err := p.lock("delete")
	defer unlock()
	content, ok := p.known(volume.Name)
	if !ok {
		return gone(volume.Name)
	}
	p.free += len(content)
	delete(p.files, volume.Name)
	return err
}

func (p *pool) StorageVolGetInfoFlags(volume libvirt.StorageVol, _ uint32) (int8, uint64, uint64, error) {
	unlock, err := p.lock("length")
	defer unlock()
	content, ok := p.known(volume.Name)
	if !ok {
		return 0, 0, 0, gone(volume.Name)
	}
	return 0, uint64(len(content)), uint64(len(content)), err
}

func (p *pool) StorageVolUpload(volume libvirt.StorageVol, from io.Reader, offset, length uint64,
	_ libvirt.StorageVolUploadFlags,
) error {
	buffer := make([]byte, 4<<20)
	p.mu.Lock()
	uploading, stuck := p.uploading, p.stuck
	p.mu.Unlock()
	if uploading != nil {
		uploading(volume.Name)
	}
	if stuck != nil {
		<-stuck
	}
	for {
		n, err := from.Read(buffer)
		if stored := p.write(volume.Name, buffer[:n], &offset, &length); stored != nil {
			return stored
		}
		if err == io.EOF {
			return nil // also of a reader that ended early
		}
		if err != nil {
			return err
		}
	}
}

func (p *pool) write(name string, some []byte, offset, length *uint64) error {
	unlock, err := p.lock("write")
	defer unlock()
	content, ok := p.known(name)
	switch {
	case err != nil:
		return err
	case !ok:
		return gone(name)
	case uint64(len(some)) > *length:
		p.tooLong = true
		return libvirt.Error{Code: 38, Message: "cannot write to stream: No space left on device"}
	case len(some) > p.free && p.lies:
		return nil
	case len(some) > p.free:
		return libvirt.Error{Code: 38, Message: "Unable to write /pool/" + name + ": No space left on device"}
	}
	if p.corrupts && len(some) > 0 {
		some = slices.Clone(some)
		some[0] ^= 1
	}
	p.files[name] = append(content[:min(uint64(len(content)), *offset)], some...)
	p.free -= len(some)
	*offset += uint64(len(some))
	*length -= uint64(len(some))
	return nil
}

func (p *pool) StorageVolDownload(volume libvirt.StorageVol, to io.Writer, offset, length uint64,
	_ libvirt.StorageVolDownloadFlags,
) error {
	unlock, err := p.lock("download")
	content, ok := p.known(volume.Name)
	content = slices.Clone(content)
	unlock()
	if !ok || err != nil {
		return err
	}
	_, err = io.Copy(to, bytes.NewReader(content[offset:offset+length]))
	return err
}

// host gives the pool to a fetcher, and leaves a use that is stuck when a context ends.
func (p *pool) host() image.Host {
	return image.Host{Name: "host-a", Pool: libvirt.StoragePool{Name: "default"}, Do: p.doAs(p)}
}

func (p *pool) doAs(api image.API) func(context.Context, func(image.API) error) error {
	return func(ctx context.Context, use func(image.API) error) error {
		done := make(chan error, 1)
		go func() { done <- use(api) }()
		select {
		case err := <-done:
			return err
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// names are what is in the pool.
func (p *pool) names() []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	found := []string{}
	for name := range p.files {
		found = append(found, name)
	}
	slices.Sort(found)
	return found
}

func (p *pool) put(name string, content []byte) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.files[name] = slices.Clone(content)
}

func (p *pool) content(name string) []byte {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Clone(p.files[name])
}

// holds asserts that the pool has an entry's image as a whole, and nothing else.
func (p *pool) holds(t *testing.T, entry image.Entry, content []byte) {
	t.Helper()
	volume, found, err := image.Find(t.Context(), p, libvirt.StoragePool{}, entry)
	require.NoError(t, err)
	require.True(t, found)
	require.Equal(t, entry.Volume(), volume.Name)
	require.True(t, bytes.Equal(content, p.content(entry.Volume())), "other bytes are stored")
	require.Equal(t, []string{entry.Volume(), entry.Volume() + ".complete"}, p.names())
	require.False(t, p.tooLong, "a reader went on after its length")
}

// lacks asserts that no image is there, nor anybody who would keep others from fetching it.
func (p *pool) lacks(t *testing.T, entry image.Entry) {
	t.Helper()
	_, found, err := image.Find(t.Context(), p, libvirt.StoragePool{}, entry)
	require.NoError(t, err)
	require.False(t, found)
	for _, name := range p.names() {
		require.NotContains(t, name, ".fetching-", "it is left")
	}
}
