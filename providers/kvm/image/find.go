package image

import (
	"context"
	"errors"
	"io"
	"slices"
	"strings"

	"github.com/digitalocean/go-libvirt"
	"libvirt.org/go/libvirtxml"
)

// API is what this package needs of a host: methods of *libvirt.Libvirt.
type API interface {
	StoragePoolGetInfo(pool libvirt.StoragePool) (state uint8, capacity, allocation, available uint64, err error)
	StoragePoolListAllVolumes(pool libvirt.StoragePool, needResults int32, flags uint32) (
		volumes []libvirt.StorageVol, count uint32, err error)
	StoragePoolRefresh(pool libvirt.StoragePool, flags uint32) error
	StorageVolLookupByName(pool libvirt.StoragePool, name string) (libvirt.StorageVol, error)
	StorageVolCreateXML(pool libvirt.StoragePool, xml string, flags libvirt.StorageVolCreateFlags) (
		libvirt.StorageVol, error)
	StorageVolDelete(volume libvirt.StorageVol, flags libvirt.StorageVolDeleteFlags) error
	StorageVolGetInfoFlags(volume libvirt.StorageVol, flags uint32) (kind int8, capacity, allocation uint64, err error)
	StorageVolUpload(volume libvirt.StorageVol, from io.Reader, offset, length uint64,
		flags libvirt.StorageVolUploadFlags) error
	StorageVolDownload(volume libvirt.StorageVol, to io.Writer, offset, length uint64,
		flags libvirt.StorageVolDownloadFlags) error
}

var _ API = (*libvirt.Libvirt)(nil)

// complete ends the name of the empty volume that says of another one: it was read
// back, and its digest is right. libvirt renames no volume, and a copy under a final
// name could be cut off like the download; an empty file is there or not.
const complete = ".complete"

// Find returns an entry's volume, and whether it is there as a whole; one that is
// still being written never is. The volume may become the backing of an overlay, with
// the entry's format: what the pool believes of its format counts for nothing.
func Find(ctx context.Context, api API, pool libvirt.StoragePool, entry Entry) (libvirt.StorageVol, bool, error) {
	if err := ctx.Err(); err != nil {
		return libvirt.StorageVol{}, false, err
	}
	// The mark is asked for first: who starts anew removes it before the volume.
	for _, name := range []string{entry.Volume() + complete, entry.Volume()} {
		volume, found, err := lookup(api, pool, name)
		if err != nil || !found {
			return libvirt.StorageVol{}, false, err
		}
		if name == entry.Volume() {
			return volume, true, nil
		}
	}
	return libvirt.StorageVol{}, false, nil
}

func lookup(api API, pool libvirt.StoragePool, name string) (libvirt.StorageVol, bool, error) {
	volume, err := api.StorageVolLookupByName(pool, name)
	if is(err, libvirt.ErrNoStorageVol) {
		return libvirt.StorageVol{}, false, nil
	}
	return volume, err == nil, err
}

// create makes an empty volume, and says of one that is there already that it is not new.
func create(api API, pool libvirt.StoragePool, name string) (volume libvirt.StorageVol, isNew bool, err error) {
	description := libvirtxml.StorageVolume{
		Name:     name,
		Capacity: &libvirtxml.StorageVolumeSize{Unit: "bytes", Value: 0},
		Target: &libvirtxml.StorageVolumeTarget{
			Format: &libvirtxml.StorageVolumeTargetFormat{Type: FormatRaw},
			// QEMU runs as another user, and several guests read one base.
			Permissions: &libvirtxml.StorageVolumeTargetPermissions{Mode: "0644"},
		},
	}
	xml, err := description.Marshal()
	if err != nil {
		return libvirt.StorageVol{}, false, err
	}
	volume, err = api.StorageVolCreateXML(pool, xml, 0)
	switch {
	case is(err, libvirt.ErrStorageVolExist):
		volume, _, err = lookup(api, pool, name)
		return volume, false, err
	case is(err, libvirt.ErrOperationInvalid) && strings.Contains(err.Error(), "already exists"):
		return known(api, pool, name)
	}
	return volume, err == nil, err
}

// known has the pool read its folder again: a file is there that it did not know.
func known(api API, pool libvirt.StoragePool, name string) (volume libvirt.StorageVol, isNew bool, err error) {
	if err := api.StoragePoolRefresh(pool, 0); err != nil {
		return libvirt.StorageVol{}, false, err
	}
	volume, err = api.StorageVolLookupByName(pool, name)
	return volume, false, err
}

// remove deletes a volume; one that is gone already is fine.
func remove(api API, pool libvirt.StoragePool, name string) error {
	volume, found, err := lookup(api, pool, name)
	if err != nil || !found {
		return err
	}
	if err := api.StorageVolDelete(volume, 0); !is(err, libvirt.ErrNoStorageVol) {
		return err
	}
	return nil
}

// stored is how many bytes of a volume there are: the file's length, which grows as it
// is written, since it began with none.
func stored(api API, volume libvirt.StorageVol) (int64, error) {
	_, _, physical, err := api.StorageVolGetInfoFlags(volume, uint32(libvirt.StorageVolGetPhysical))
	return int64(physical), err //nolint:gosec // no file has 2^63 bytes
}

func is(err error, number libvirt.ErrorNumber) bool {
	theirs, ok := errors.AsType[libvirt.Error](err)
	return ok && theirs.Code == uint32(number) //nolint:gosec // libvirt's numbers are small
}

// names lists the volumes of a pool whose names begin with one text.
func names(api API, pool libvirt.StoragePool, prefix string) ([]string, error) {
	volumes, _, err := api.StoragePoolListAllVolumes(pool, 1, 0)
	if err != nil {
		return nil, err
	}
	found := []string{}
	for _, volume := range volumes {
		if strings.HasPrefix(volume.Name, prefix) {
			found = append(found, volume.Name)
		}
	}
	slices.Sort(found)
	return found, nil
}
