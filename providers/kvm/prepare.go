package kvm

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"log/slog"

	"github.com/digitalocean/go-libvirt"

	"github.com/egressfleet/egressfleet/providers"
	"github.com/egressfleet/egressfleet/providers/kvm/image"
)

// entry is an image of the configuration as the package image knows it.
func (i ImageConfig) entry(key string) image.Entry {
	e := image.Entry{Name: key, URL: i.URL, SHA256: i.SHA256, Format: i.Format}
	if i.File != "" {
		e.URL = i.File
	}
	return e
}

// Prepare brings the image of a request to the host that its create will choose. It streams
// for as long as that takes, on a connection of its own.
func (p *Provider) Prepare(ctx context.Context, req providers.CreateRequest) error {
	h, err := p.prepare(ctx, req)
	if err != nil {
		return p.fail(ctx, providers.OpPrepare, req.Name, err)
	}
	p.report(ctx, providers.OpPrepare, formatID(h.Name, req.Name), slog.String("image", req.Placement.Image))
	return nil
}

func (p *Provider) prepare(ctx context.Context, req providers.CreateRequest) (*host, error) {
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	o, err := p.accept(req)
	if err != nil {
		return nil, err
	}
	ctx = about(ctx, req.Name)
	h, err := p.place(ctx, o)
	if err != nil {
		return nil, err
	}
	pool, err := p.calling(ctx, h, h.link.Do).StoragePoolLookupByName(h.Pool)
	if err != nil {
		return nil, err
	}
	return h, p.images.Fetch(ctx, image.Host{
		Name: h.Name, Pool: pool,
		Do: func(ctx context.Context, use func(image.API) error) error {
			return h.link.Probe(ctx, func(a api) error { return use(a) })
		},
	}, o.image)
}

// base is a volume that overlays lie on.
type base struct {
	backing
	size uint64 // of the disk that a guest sees, in bytes
}

// base finds the volume of the image on the host.
func (m *making) base() (base, error) {
	vol, found, err := m.find()
	if err != nil {
		return base{}, err
	}
	if !found {
		return base{}, transient("%w", &providers.NotPreparedError{
			What: "image " + m.order.image.Name + " on host " + m.host.Name,
		})
	}
	path, err := m.calls.StorageVolGetPath(vol)
	if err != nil {
		return base{}, err
	}
	size, err := m.sizeOf(vol)
	if err == nil && m.order.machine.disk != 0 && m.order.machine.disk < size {
		return base{}, permanent("machineTypes.%s.disk: %d MiB are less than the %d MiB of image %q",
			m.order.Placement.MachineType, m.order.machine.disk>>20, size>>20, m.order.image.Name)
	}
	return base{backing{path, m.order.image.Format}, size}, err
}

// The header of a qcow2 file: a magic word, and where the size of the disk is, which is
// big-endian.
const (
	qcow2Magic  = "QFI\xfb"
	qcow2SizeAt = 24
	qcow2Header = qcow2SizeAt + 8
)

// sizeOf reads how large the disk in a volume is. A pool that has not read its folder again
// takes an image for a raw file, so the file itself is asked.
func (m *making) sizeOf(vol libvirt.StorageVol) (uint64, error) {
	if m.order.image.Format == formatRaw {
		_, _, length, err := m.calls.StorageVolGetInfoFlags(vol, uint32(libvirt.StorageVolGetPhysical))
		return length, err
	}
	var header bytes.Buffer
	if err := m.calls.StorageVolDownload(vol, &header, 0, qcow2Header, 0); err != nil {
		return 0, err
	}
	data := header.Bytes()
	if len(data) < qcow2Header || !bytes.HasPrefix(data, []byte(qcow2Magic)) {
		return 0, permanent("images.%s.format: the file is no %s", m.order.image.Name, formatQCOW2)
	}
	return binary.BigEndian.Uint64(data[qcow2SizeAt:]), nil
}

// classOfImage is the class that the fetch of an image has decided; false when it left that open.
func classOfImage(err error) (providers.Class, bool) {
	failed, ok := errors.AsType[*image.Error](err)
	if !ok {
		return "", false
	}
	return failed.Class, true
}
